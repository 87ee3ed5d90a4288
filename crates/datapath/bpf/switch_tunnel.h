/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Packets to back-ends behind routers get another IP header, which is addressed to the back-end. A packet that is then too long for
 * the way is answered as a router would: its sender learns what fits. Packets that this machine has merged are cut up again to fit, by
 * tc; XDP sees none.
 */
#pragma once

#include "switch_too_big.h"

#define TTL 64
/* Of the ports for passing use: which one follows from the connection, so that routers spread connections over their ways. */
#define FIRST_SOURCE_PORT 49152

struct outer_v4 {
	struct iphdr ip;
	struct udphdr udp;
};

struct outer_v6 {
	struct ipv6hdr ip;
	struct udphdr udp;
};

ALWAYS_INLINE bool is_mapped(const __u32 *address)
{
	return !address[0] && !address[1] && address[2] == bpf_htonl(0xffff);
}

ALWAYS_INLINE void set_udp(struct udphdr *udp, const struct sight *sight, __u32 bytes)
{
	udp->source = bpf_htons(FIRST_SOURCE_PORT + (table_slot(&sight->key) & 0x3fff));
	udp->dest = bpf_htons(GUE_PORT);
	udp->len = bpf_htons(bytes);
	/* The packet inside has its own (RFC 6935 for IPv6). */
	udp->check = 0;
}

/* What is needed to build the outer headers. */
struct enclosing {
	__u32 outer_bytes;
	__u32 udp_bytes; /* of the header between, or 0 */
	__u32 bytes;	 /* of the packet inside */
	__u32 offset;	 /* where the outer headers begin */
	__u8 protocol;	 /* of what is in the outer IP packet */
	bool v6;	 /* the outer one */
};

ALWAYS_INLINE long enclose_v4(CONTEXT *context, const struct switch_tunnel *tunnel, const struct sight *sight,
			      const struct enclosing *by)
{
	struct outer_v4 outer = {};

	outer.ip.version = 4;
	outer.ip.ihl = 5;
	outer.ip.tot_len = bpf_htons(by->outer_bytes + by->bytes);
	outer.ip.frag_off = bpf_htons(0x4000);
	outer.ip.ttl = TTL;
	outer.ip.protocol = by->protocol;
	outer.ip.saddr = tunnel->local[3];
	outer.ip.daddr = tunnel->remote[3];
	outer.ip.check = fold(bpf_csum_diff(NULL, 0, (__be32 *)&outer.ip, sizeof(outer.ip), 0));
	if (!by->udp_bytes)
		return STORE(context, by->offset, &outer, sizeof(outer.ip));
	set_udp(&outer.udp, sight, by->udp_bytes + by->bytes);
	return STORE(context, by->offset, &outer, sizeof(outer));
}

ALWAYS_INLINE long enclose_v6(CONTEXT *context, const struct switch_tunnel *tunnel, const struct sight *sight,
			      const struct enclosing *by)
{
	struct outer_v6 outer = {};

	outer.ip.version = 6;
	outer.ip.payload_len = bpf_htons(by->udp_bytes + by->bytes);
	outer.ip.nexthdr = by->protocol;
	outer.ip.hop_limit = TTL;
	__builtin_memcpy(&outer.ip.saddr, tunnel->local, sizeof(outer.ip.saddr));
	__builtin_memcpy(&outer.ip.daddr, tunnel->remote, sizeof(outer.ip.daddr));
	if (!by->udp_bytes)
		return STORE(context, by->offset, &outer, sizeof(outer.ip));
	set_udp(&outer.udp, sight, by->udp_bytes + by->bytes);
	return STORE(context, by->offset, &outer, sizeof(outer));
}

#ifdef SWITCH_XDP

/* The tag that the frame came with is of this segment, where the packet does not stay. */
ALWAYS_INLINE bool make_room(struct xdp_md *context, const struct sight *sight, const struct enclosing *by)
{
	return !bpf_xdp_adjust_head(context, (int)sight->ip_offset - (int)(by->offset + by->outer_bytes));
}

/* Writes the Ethernet header, with its tag. */
ALWAYS_INLINE long address_frame(struct xdp_md *context, const struct switch_backend *backend, bool v6)
{
	struct tagged_ethernet ethernet;
	__be16 protocol = v6 ? bpf_htons(ETH_P_IPV6) : bpf_htons(ETH_P_IP);

	set_addresses(ethernet.destination, ethernet.source, backend);
	if (!sets_tag(backend->vlan)) {
		ethernet.tag_protocol = protocol;
		return STORE(context, 0, &ethernet, sizeof(struct ethhdr));
	}
	ethernet.tag_protocol = bpf_htons(ETH_P_8021Q);
	ethernet.tag = bpf_htons(backend->vlan & VLAN_ID_MASK);
	ethernet.protocol = protocol;
	return STORE(context, 0, &ethernet, sizeof(ethernet));
}

#else

/*
 * Tells the kernel what the outer headers are, too: it may have to cut the packet up. The tag that the frame came with is of this
 * segment, where the packet does not stay.
 */
ALWAYS_INLINE bool make_room(struct __sk_buff *skb, const struct sight *sight, const struct enclosing *by)
{
	__u64 flags = by->v6 ? BPF_F_ADJ_ROOM_ENCAP_L3_IPV6 : BPF_F_ADJ_ROOM_ENCAP_L3_IPV4;

	if (by->udp_bytes)
		flags |= BPF_F_ADJ_ROOM_ENCAP_L4_UDP;
	if (has_tag(skb, sight) && bpf_skb_vlan_pop(skb))
		return false;
	return !bpf_skb_adjust_room(skb, by->outer_bytes, BPF_ADJ_ROOM_MAC, flags);
}

/* Writes the Ethernet header; its tag is pushed once the frame is complete. */
ALWAYS_INLINE long address_frame(struct __sk_buff *skb, const struct switch_backend *backend, bool v6)
{
	struct ethhdr ethernet;

	set_addresses(ethernet.h_dest, ethernet.h_source, backend);
	ethernet.h_proto = v6 ? bpf_htons(ETH_P_IPV6) : bpf_htons(ETH_P_IP);
	return STORE(skb, 0, &ethernet, sizeof(ethernet));
}

#endif

ALWAYS_INLINE bool is_merged(CONTEXT *context)
{
#ifdef SWITCH_XDP
	(void)context;
	return false;
#else
	return context->gso_size;
#endif
}

ALWAYS_INLINE int forward_by_tunnel(CONTEXT *context, const struct switch_backend *backend,
				    const struct switch_tunnel *tunnel, const struct sight *sight,
				    struct switch_counters *counts)
{
	bool inner_v6 = !is_mapped(sight->key.flow.vip);
	struct enclosing by = {
		.udp_bytes = tunnel->kind == TUNNEL_GUE ? sizeof(struct udphdr) : 0,
		.bytes = sight->frame_bytes - sight->ip_offset,
		.v6 = !is_mapped(tunnel->remote),
	};
	long failed;

	by.protocol = by.udp_bytes ? PROTOCOL_UDP : inner_v6 ? PROTOCOL_IP6IP : PROTOCOL_IPIP;
	by.outer_bytes = (by.v6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr)) + by.udp_bytes;
	if (!is_merged(context) && by.bytes + by.outer_bytes > tunnel->most_bytes) {
		counts->too_big++;
		return tell_too_big(context, sight, inner_v6, tunnel->most_bytes - by.outer_bytes);
	}
	by.offset = sizeof(struct ethhdr);
#ifdef SWITCH_XDP
	if (sets_tag(backend->vlan))
		by.offset = TAGGED_BYTES;
#endif
	if (!make_room(context, sight, &by))
		return DROP;
	failed = address_frame(context, backend, by.v6);
	if (by.v6)
		failed |= enclose_v6(context, tunnel, sight, &by);
	else
		failed |= enclose_v4(context, tunnel, sight, &by);
#ifndef SWITCH_XDP
	if (sets_tag(backend->vlan))
		failed |= bpf_skb_vlan_push(context, bpf_htons(ETH_P_8021Q), backend->vlan & VLAN_ID_MASK);
#endif
	if (failed)
		return DROP;
	counts->forwarded_packets++;
	counts->forwarded_bytes += sight->frame_bytes;
	return send_to(context, sight, backend->ifindex);
}
