/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Packets to back-ends behind routers get another IP header, which is addressed to the back-end. A packet that is then too long for
 * the way is answered as a router would: its sender learns what fits. Packets that this machine has merged are cut up again to fit.
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

/* `bytes`: of the packet inside, `udp_bytes`: of the header between, or 0. */
ALWAYS_INLINE long enclose_v4(struct __sk_buff *skb, const struct switch_tunnel *tunnel, const struct sight *sight,
			      __u32 bytes, __u32 udp_bytes, __u8 protocol)
{
	struct outer_v4 outer = {};

	outer.ip.version = 4;
	outer.ip.ihl = 5;
	outer.ip.tot_len = bpf_htons(sizeof(outer.ip) + udp_bytes + bytes);
	outer.ip.frag_off = bpf_htons(0x4000);
	outer.ip.ttl = TTL;
	outer.ip.protocol = protocol;
	outer.ip.saddr = tunnel->local[3];
	outer.ip.daddr = tunnel->remote[3];
	outer.ip.check = fold(bpf_csum_diff(NULL, 0, (__be32 *)&outer.ip, sizeof(outer.ip), 0));
	if (!udp_bytes)
		return bpf_skb_store_bytes(skb, sizeof(struct ethhdr), &outer, sizeof(outer.ip), 0);
	set_udp(&outer.udp, sight, udp_bytes + bytes);
	return bpf_skb_store_bytes(skb, sizeof(struct ethhdr), &outer, sizeof(outer), 0);
}

ALWAYS_INLINE long enclose_v6(struct __sk_buff *skb, const struct switch_tunnel *tunnel, const struct sight *sight,
			      __u32 bytes, __u32 udp_bytes, __u8 protocol)
{
	struct outer_v6 outer = {};

	outer.ip.version = 6;
	outer.ip.payload_len = bpf_htons(udp_bytes + bytes);
	outer.ip.nexthdr = protocol;
	outer.ip.hop_limit = TTL;
	__builtin_memcpy(&outer.ip.saddr, tunnel->local, sizeof(outer.ip.saddr));
	__builtin_memcpy(&outer.ip.daddr, tunnel->remote, sizeof(outer.ip.daddr));
	if (!udp_bytes)
		return bpf_skb_store_bytes(skb, sizeof(struct ethhdr), &outer, sizeof(outer.ip), 0);
	set_udp(&outer.udp, sight, udp_bytes + bytes);
	return bpf_skb_store_bytes(skb, sizeof(struct ethhdr), &outer, sizeof(outer), 0);
}

/* Makes room for the outer headers, and tells the kernel what they are: it may have to cut the packet up. */
ALWAYS_INLINE long make_room(struct __sk_buff *skb, bool v6, __u32 udp_bytes)
{
	__u64 flags = v6 ? BPF_F_ADJ_ROOM_ENCAP_L3_IPV6 : BPF_F_ADJ_ROOM_ENCAP_L3_IPV4;
	__u32 bytes = (v6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr)) + udp_bytes;

	if (udp_bytes)
		flags |= BPF_F_ADJ_ROOM_ENCAP_L4_UDP;
	return bpf_skb_adjust_room(skb, bytes, BPF_ADJ_ROOM_MAC, flags);
}

ALWAYS_INLINE int forward_by_tunnel(struct __sk_buff *skb, const struct switch_backend *backend,
				    const struct switch_tunnel *tunnel, const struct sight *sight,
				    struct switch_counters *counts)
{
	bool inner_v6 = !is_mapped(sight->key.flow.vip);
	bool v6 = !is_mapped(tunnel->remote);
	__u32 udp_bytes = tunnel->kind == TUNNEL_GUE ? sizeof(struct udphdr) : 0;
	__u32 outer_bytes = (v6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr)) + udp_bytes;
	__u32 bytes = sight->frame_bytes - sight->ip_offset;
	__u8 protocol = udp_bytes ? PROTOCOL_UDP : inner_v6 ? PROTOCOL_IP6IP : PROTOCOL_IPIP;
	struct ethhdr ethernet;
	__u64 destination = backend->destination;
	__u64 source = backend->source;
	__u32 ifindex = backend->ifindex;
	long failed;

	/* The tag is of this segment, where the packet does not stay. */
	if ((skb->vlan_present || sight->ip_offset != sizeof(struct ethhdr)) && bpf_skb_vlan_pop(skb))
		return PASS;
	if (!skb->gso_size && bytes + outer_bytes > tunnel->most_bytes) {
		counts->too_big++;
		return tell_too_big(skb, sight, inner_v6, tunnel->most_bytes - outer_bytes);
	}
	if (make_room(skb, v6, udp_bytes))
		return TC_ACT_SHOT;
	__builtin_memcpy(ethernet.h_dest, &destination, ETH_ALEN);
	__builtin_memcpy(ethernet.h_source, &source, ETH_ALEN);
	ethernet.h_proto = v6 ? bpf_htons(ETH_P_IPV6) : bpf_htons(ETH_P_IP);
	failed = bpf_skb_store_bytes(skb, 0, &ethernet, sizeof(ethernet), 0);
	if (v6)
		failed |= enclose_v6(skb, tunnel, sight, bytes, udp_bytes, protocol);
	else
		failed |= enclose_v4(skb, tunnel, sight, bytes, udp_bytes, protocol);
	if (failed)
		return TC_ACT_SHOT;
	counts->forwarded_packets++;
	counts->forwarded_bytes += sight->frame_bytes;
	return bpf_redirect(ifindex, 0);
}
