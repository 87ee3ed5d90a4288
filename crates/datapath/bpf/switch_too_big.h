/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Answers a packet that does not fit into its tunnel: "fragmentation needed" (RFC 1191) or "packet too big" (RFC 4443). */
#pragma once

#include "switch_frame.h"
#include "switch_place.h"
#include "tunnel.h"

/* Of the packet, quoted in the answer: its headers and the beginning of what it carries. A multiple of 4. */
#define QUOTED_BYTES 64
#define ICMP_BYTES (sizeof(struct icmp_too_big) - QUOTED_BYTES)
#define HOP_LIMIT 64

struct icmp_too_big {
	__u8 type;
	__u8 code;
	__u16 check;
	__be32 mtu; /* IPv4: the lower half */
	__u8 quoted[QUOTED_BYTES];
};

/* The complement of a sum of 16-bit words. */
ALWAYS_INLINE __u16 fold(__s64 sum)
{
	__u64 folded = (__u32)sum;

	folded = (folded & 0xffff) + (folded >> 16);
	folded = (folded & 0xffff) + (folded >> 16);
	return ~folded;
}

ALWAYS_INLINE long answer_v4(CONTEXT *context, const struct sight *sight, __u32 offset, struct icmp_too_big *icmp)
{
	struct iphdr ip = {
		.version = 4,
		.ihl = 5,
		.tot_len = bpf_htons(sizeof(ip) + sizeof(*icmp)),
		.ttl = HOP_LIMIT,
		.protocol = PROTOCOL_ICMP,
		.saddr = sight->key.flow.vip[3],
		.daddr = sight->key.flow.client[3],
	};

	ip.check = fold(bpf_csum_diff(NULL, 0, (__be32 *)&ip, sizeof(ip), 0));
	icmp->type = 3;
	icmp->code = 4;
	icmp->check = fold(bpf_csum_diff(NULL, 0, (__be32 *)icmp, sizeof(*icmp), 0));
	return STORE(context, offset, &ip, sizeof(ip)) | STORE(context, offset + sizeof(ip), icmp, sizeof(*icmp));
}

ALWAYS_INLINE long answer_v6(CONTEXT *context, const struct sight *sight, __u32 offset, struct icmp_too_big *icmp)
{
	__be32 pseudo[2] = { bpf_htonl(sizeof(*icmp)), bpf_htonl(PROTOCOL_ICMPV6) };
	struct ipv6hdr ip = {
		.version = 6,
		.payload_len = bpf_htons(sizeof(*icmp)),
		.nexthdr = PROTOCOL_ICMPV6,
		.hop_limit = HOP_LIMIT,
	};
	__s64 sum;

	__builtin_memcpy(&ip.saddr, sight->key.flow.vip, sizeof(ip.saddr));
	__builtin_memcpy(&ip.daddr, sight->key.flow.client, sizeof(ip.daddr));
	icmp->type = 2;
	icmp->code = 0;
	sum = bpf_csum_diff(NULL, 0, pseudo, sizeof(pseudo), 0);
	sum = bpf_csum_diff(NULL, 0, (__be32 *)&ip.saddr, 2 * sizeof(ip.saddr), sum);
	icmp->check = fold(bpf_csum_diff(NULL, 0, (__be32 *)icmp, sizeof(*icmp), sum));
	return STORE(context, offset, &ip, sizeof(ip)) | STORE(context, offset + sizeof(ip), icmp, sizeof(*icmp));
}

#ifdef SWITCH_XDP

/* Cuts the frame to what is quoted and the headers before it. */
ALWAYS_INLINE long cut(struct xdp_md *context, const struct sight *sight, __u32 header_bytes)
{
	__u32 bytes = sight->ip_offset + header_bytes + QUOTED_BYTES;

	return bpf_xdp_adjust_tail(context, (int)bytes - (int)sight->frame_bytes);
}

#else

ALWAYS_INLINE long cut(struct __sk_buff *skb, const struct sight *sight, __u32 header_bytes)
{
	return bpf_skb_change_tail(skb, sight->ip_offset + QUOTED_BYTES, 0) ||
	       bpf_skb_adjust_room(skb, header_bytes, BPF_ADJ_ROOM_MAC, 0);
}

#endif

/* The packet becomes the answer to its sender, in the VLAN in which it came: packets of `mtu` bytes fit. */
ALWAYS_INLINE int tell_too_big(CONTEXT *context, const struct sight *sight, bool v6, __u32 mtu)
{
	struct icmp_too_big icmp = { .mtu = bpf_htonl(mtu) };
	__u32 header_bytes = (v6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr)) + ICMP_BYTES;
	struct ethhdr ethernet, turned;
	long failed;

	/* An error is never the cause of another one. */
	if (!has_ports(sight->key.protocol) || sight->is_error)
		return DROP;
	if (LOAD(context, sight->ip_offset, icmp.quoted, QUOTED_BYTES) ||
	    LOAD(context, 0, &ethernet, sizeof(ethernet)) || cut(context, sight, header_bytes))
		return DROP;
	__builtin_memcpy(turned.h_dest, ethernet.h_source, ETH_ALEN);
	__builtin_memcpy(turned.h_source, ethernet.h_dest, ETH_ALEN);
	failed = v6 ? answer_v6(context, sight, sight->ip_offset, &icmp) :
		      answer_v4(context, sight, sight->ip_offset, &icmp);
	failed |= STORE(context, 0, &turned, 2 * ETH_ALEN);
	if (failed)
		return DROP;
#ifdef SWITCH_XDP
	return send_to(context, sight, context->ingress_ifindex);
#else
	return send_to(context, sight, context->ifindex);
#endif
}
