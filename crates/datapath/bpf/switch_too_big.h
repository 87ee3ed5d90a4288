/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Answers a packet that does not fit into its tunnel: "fragmentation needed" (RFC 1191) or "packet too big" (RFC 4443). */
#pragma once

#include "switch_place.h"
#include "tunnel.h"

/* Of the packet, quoted in the answer: its headers and the beginning of what it carries. A multiple of 4. */
#define QUOTED_BYTES 64
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

ALWAYS_INLINE long answer_v4(struct __sk_buff *skb, const struct sight *sight, struct icmp_too_big *icmp)
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
	if (bpf_skb_adjust_room(skb, sizeof(ip) + sizeof(*icmp) - QUOTED_BYTES, BPF_ADJ_ROOM_MAC, 0))
		return -1;
	return bpf_skb_store_bytes(skb, sizeof(struct ethhdr), &ip, sizeof(ip), 0) |
	       bpf_skb_store_bytes(skb, sizeof(struct ethhdr) + sizeof(ip), icmp, sizeof(*icmp), 0);
}

ALWAYS_INLINE long answer_v6(struct __sk_buff *skb, const struct sight *sight, struct icmp_too_big *icmp)
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
	if (bpf_skb_adjust_room(skb, sizeof(ip) + sizeof(*icmp) - QUOTED_BYTES, BPF_ADJ_ROOM_MAC, 0))
		return -1;
	return bpf_skb_store_bytes(skb, sizeof(struct ethhdr), &ip, sizeof(ip), 0) |
	       bpf_skb_store_bytes(skb, sizeof(struct ethhdr) + sizeof(ip), icmp, sizeof(*icmp), 0);
}

/* The packet, which has no VLAN tag, becomes the answer to its sender: packets of `mtu` bytes fit. */
ALWAYS_INLINE int tell_too_big(struct __sk_buff *skb, const struct sight *sight, bool v6, __u32 mtu)
{
	struct icmp_too_big icmp = { .mtu = bpf_htonl(mtu) };
	struct ethhdr ethernet, turned;
	long failed;

	/* An error is never the cause of another one. */
	if (!has_ports(sight->key.protocol) || sight->is_error)
		return TC_ACT_SHOT;
	if (bpf_skb_load_bytes(skb, sizeof(ethernet), icmp.quoted, QUOTED_BYTES) ||
	    bpf_skb_load_bytes(skb, 0, &ethernet, sizeof(ethernet)) ||
	    bpf_skb_change_tail(skb, sizeof(ethernet) + QUOTED_BYTES, 0))
		return TC_ACT_SHOT;
	__builtin_memcpy(turned.h_dest, ethernet.h_source, ETH_ALEN);
	__builtin_memcpy(turned.h_source, ethernet.h_dest, ETH_ALEN);
	turned.h_proto = ethernet.h_proto;
	failed = v6 ? answer_v6(skb, sight, &icmp) : answer_v4(skb, sight, &icmp);
	failed |= bpf_skb_store_bytes(skb, 0, &turned, sizeof(turned), 0);
	return failed ? TC_ACT_SHOT : bpf_redirect(skb->ifindex, 0);
}
