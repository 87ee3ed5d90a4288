/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Errors that routers on the way to a client send back to us about packets that a back-end has sent in our name. The
 * back-end has to hear of them: without "packet too big" its large segments would be lost for ever.
 */
#pragma once

#include "parse.h"

#define PROTOCOL_ICMP 1
#define PROTOCOL_ICMPV6 58
#define ICMP_HEADER_BYTES 8

/* Destination unreachable (with "fragmentation needed"), time exceeded, parameter problem: RFC 792. */
ALWAYS_INLINE bool is_error_v4(__u8 type)
{
	return type == 3 || type == 11 || type == 12;
}

/* Destination unreachable, packet too big, time exceeded, parameter problem: RFC 4443. */
ALWAYS_INLINE bool is_error_v6(__u8 type)
{
	return type >= 1 && type <= 4;
}

/* The ports of the packet that the error is about, which we are said to have sent, follow its IP header. */
ALWAYS_INLINE bool load_ports(struct __sk_buff *skb, __u32 offset, struct flow_key *flow)
{
	__be16 ports[2];

	if (bpf_skb_load_bytes(skb, offset, ports, sizeof(ports)))
		return false;
	flow->vip_port = ports[0];
	flow->client_port = ports[1];
	return true;
}

ALWAYS_INLINE bool error_v4(struct __sk_buff *skb, struct flow_key *flow)
{
	__u32 offset = sizeof(struct ethhdr);
	struct iphdr ip;
	__u8 type;

	if (bpf_skb_load_bytes(skb, offset, &ip, sizeof(ip)) || ip.protocol != PROTOCOL_ICMP || ip.ihl != 5 ||
	    ip.frag_off & bpf_htons(FRAGMENT_MASK))
		return false;
	offset += sizeof(ip);
	if (bpf_skb_load_bytes(skb, offset, &type, sizeof(type)) || !is_error_v4(type))
		return false;
	offset += ICMP_HEADER_BYTES;
	if (bpf_skb_load_bytes(skb, offset, &ip, sizeof(ip)) || ip.protocol != PROTOCOL_TCP || ip.ihl != 5)
		return false;
	set_v4(flow->vip, ip.saddr);
	set_v4(flow->client, ip.daddr);
	return load_ports(skb, offset + sizeof(ip), flow);
}

ALWAYS_INLINE bool error_v6(struct __sk_buff *skb, struct flow_key *flow)
{
	__u32 offset = sizeof(struct ethhdr);
	struct ipv6hdr ip;
	__u8 type;

	if (bpf_skb_load_bytes(skb, offset, &ip, sizeof(ip)) || ip.nexthdr != PROTOCOL_ICMPV6)
		return false;
	offset += sizeof(ip);
	if (bpf_skb_load_bytes(skb, offset, &type, sizeof(type)) || !is_error_v6(type))
		return false;
	offset += ICMP_HEADER_BYTES;
	if (bpf_skb_load_bytes(skb, offset, &ip, sizeof(ip)) || ip.nexthdr != PROTOCOL_TCP)
		return false;
	set_v6(flow->vip, &ip.saddr);
	set_v6(flow->client, &ip.daddr);
	return load_ports(skb, offset + sizeof(ip), flow);
}

/* Whether the packet is an error about a TCP connection, and then about which. */
ALWAYS_INLINE bool parse_error(struct __sk_buff *skb, struct flow_key *flow)
{
	if (skb->vlan_present)
		return false;
	if (skb->protocol == bpf_htons(ETH_P_IP))
		return error_v4(skb, flow);
	if (skb->protocol == bpf_htons(ETH_P_IPV6))
		return error_v6(skb, flow);
	return false;
}
