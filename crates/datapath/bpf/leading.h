/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Which packets are of our connections, and how one is led to another machine of the segment. */
#pragma once

#include "icmp.h"
#include "packet.h"

/* Ports of our listeners, one bit each: a cheap look before the look-up of a flow. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 65536 / 64);
	__type(key, __u32);
	__type(value, __u64);
} plimsoll_ports SEC(".maps");

ALWAYS_INLINE bool port_is_ours(__be16 port)
{
	__u16 number = bpf_ntohs(port);
	__u32 index = number / 64;
	__u64 *bits = bpf_map_lookup_elem(&plimsoll_ports, &index);

	return bits && (*bits >> (number % 64)) & 1;
}

/* The interface by which packets of the flow leave, or 0: they are for this machine. It is read once, as it may change. */
ALWAYS_INLINE __u32 way_out(const struct next_hop *hop)
{
	return *(const volatile __u32 *)&hop->ifindex;
}

ALWAYS_INLINE int redirect(struct __sk_buff *skb, const struct next_hop *hop, __u32 ifindex)
{
	void *data = (void *)(long)skb->data;
	void *end = (void *)(long)skb->data_end;
	struct ethhdr *ethernet = data;
	__u64 destination = hop->destination;
	__u64 source = hop->source;

	if ((void *)(ethernet + 1) > end)
		return TC_ACT_UNSPEC;
	__builtin_memcpy(ethernet->h_dest, &destination, ETH_ALEN);
	__builtin_memcpy(ethernet->h_source, &source, ETH_ALEN);
	return bpf_redirect(ifindex, 0);
}

/* Whether the packet is a router's error about one of our flows, and about which. */
ALWAYS_INLINE bool is_error_of_ours(struct __sk_buff *skb, struct flow_key *flow)
{
	return parse_error(skb, flow) && port_is_ours(flow->vip_port);
}

/* Such an error goes the way of its flow. It says nothing of the client. */
ALWAYS_INLINE int lead_error(struct __sk_buff *skb, const struct next_hop *hop, __u64 *errors)
{
	__u32 ifindex = way_out(hop);

	if (!ifindex)
		return TC_ACT_UNSPEC;
	(*errors)++;
	return redirect(skb, hop, ifindex);
}
