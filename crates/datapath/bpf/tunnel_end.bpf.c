// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * The end of a switch's tunnels, at a back-end, for tc ingress: takes the outer headers off packets that come from a switch. What is
 * inside goes on up, as if it had come by itself.
 */

#include <linux/udp.h>

#include "icmp.h"
#include "tunnel.h"

#define PROTOCOL_UDP 17
/* Since Linux 6.3; older headers do not have them. */
#define DECAP_L3_IPV4 (1ULL << 7)
#define DECAP_L3_IPV6 (1ULL << 8)

/* Switches, whose packets are believed. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, struct tunnel_source);
	__type(value, __u32);
} tunnel_sources SEC(".maps");

struct tunnel_counters {
	__u64 taken;    /* out of a tunnel */
	__u64 unknown;  /* from somebody who is no switch: left as they are */
	__u64 failed;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tunnel_counters);
} tunnel_counts SEC(".maps");

struct outer {
	struct tunnel_source source;
	__u32 bytes; /* of its headers */
	__u8 protocol;
	bool v6;
};

ALWAYS_INLINE bool read_outer(struct __sk_buff *skb, struct outer *outer)
{
	__u32 offset = sizeof(struct ethhdr);

	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		struct iphdr ip;

		if (bpf_skb_load_bytes(skb, offset, &ip, sizeof(ip)) || ip.ihl != 5 ||
		    ip.frag_off & bpf_htons(FRAGMENT_MASK))
			return false;
		set_v4(outer->source.address, ip.saddr);
		outer->protocol = ip.protocol;
		outer->bytes = sizeof(ip);
	} else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr ip;

		if (bpf_skb_load_bytes(skb, offset, &ip, sizeof(ip)))
			return false;
		set_v6(outer->source.address, &ip.saddr);
		outer->protocol = ip.nexthdr;
		outer->bytes = sizeof(ip);
		outer->v6 = true;
	} else {
		return false;
	}
	if (outer->protocol == PROTOCOL_UDP) {
		struct udphdr udp;

		if (bpf_skb_load_bytes(skb, offset + outer->bytes, &udp, sizeof(udp)) || udp.dest != bpf_htons(GUE_PORT))
			return false;
		outer->bytes += sizeof(udp);
		return true;
	}
	return outer->protocol == PROTOCOL_IPIP || outer->protocol == PROTOCOL_IP6IP;
}

/* The version of the packet inside, if it is as the outer header says. */
ALWAYS_INLINE __u8 inner_version(struct __sk_buff *skb, const struct outer *outer)
{
	__u8 first;

	if (bpf_skb_load_bytes(skb, sizeof(struct ethhdr) + outer->bytes, &first, sizeof(first)))
		return 0;
	first >>= 4;
	if (outer->protocol == PROTOCOL_IPIP && first != 4)
		return 0;
	if (outer->protocol == PROTOCOL_IP6IP && first != 6)
		return 0;
	return first;
}

ALWAYS_INLINE bool take_out(struct __sk_buff *skb, const struct outer *outer, bool v6)
{
	__be16 protocol = v6 ? bpf_htons(ETH_P_IPV6) : bpf_htons(ETH_P_IP);
	__u64 flags = 0;

	if (v6 != outer->v6)
		flags = v6 ? DECAP_L3_IPV6 : DECAP_L3_IPV4;
	if (bpf_skb_adjust_room(skb, -(__s32)outer->bytes, BPF_ADJ_ROOM_MAC, flags))
		return false;
	return !bpf_skb_store_bytes(skb, 2 * ETH_ALEN, &protocol, sizeof(protocol), 0);
}

SEC("tc")
int plimsoll_dec(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct tunnel_counters *counts = bpf_map_lookup_elem(&tunnel_counts, &zero);
	struct outer outer = {};
	__u8 version;

	if (!counts || skb->pkt_type != 0 || skb->vlan_present || !read_outer(skb, &outer))
		return TC_ACT_UNSPEC;
	if (!bpf_map_lookup_elem(&tunnel_sources, &outer.source)) {
		counts->unknown++;
		return TC_ACT_UNSPEC;
	}
	version = inner_version(skb, &outer);
	if ((version != 4 && version != 6) || !take_out(skb, &outer, version == 6)) {
		counts->failed++;
		return TC_ACT_SHOT;
	}
	counts->taken++;
	return TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "GPL";
