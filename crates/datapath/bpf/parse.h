/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* From a frame to a TCP flow: Ethernet, IPv4 or IPv6, TCP. */
#pragma once

#include "extended.h"
#include "packet.h"

#define FRAGMENT_MASK 0x3fff /* more fragments, or an offset */
#define HEADERS_BYTES (sizeof(struct ethhdr) + sizeof(struct ipv6hdr) + sizeof(struct tcphdr))
#define FOR_THIS_HOST 0 /* PACKET_HOST */

ALWAYS_INLINE void set_v4(__u32 to[4], __be32 address)
{
	to[0] = 0;
	to[1] = 0;
	to[2] = bpf_htonl(0xffff);
	to[3] = address;
}

ALWAYS_INLINE void set_v6(__u32 to[4], const struct in6_addr *address)
{
	to[0] = address->in6_u.u6_addr32[0];
	to[1] = address->in6_u.u6_addr32[1];
	to[2] = address->in6_u.u6_addr32[2];
	to[3] = address->in6_u.u6_addr32[3];
}

/* `bytes`: the TCP header and what it carries, as the IP header has it. */
ALWAYS_INLINE enum parsed parse_tcp(struct tcphdr *tcp, void *end, __u32 bytes, enum direction direction,
				    struct packet *packet)
{
	return (void *)(tcp + 1) > end ? PARSED_SHORT : read_tcp(tcp, bytes, direction, packet);
}

ALWAYS_INLINE enum parsed parse_v4(struct __sk_buff *skb, void *at, void *end, enum direction direction,
				   struct packet *packet)
{
	struct iphdr *ip = at;
	__u32 total_bytes;

	if ((void *)(ip + 1) > end)
		return PARSED_SHORT;
	if (ip->version != 4 || ip->ihl < 5)
		return PARSED_MALFORMED;
	if (ip->protocol != PROTOCOL_TCP)
		return PARSED_OTHER;
	set_v4(packet->flow.client, direction == FROM_CLIENT ? ip->saddr : ip->daddr);
	set_v4(packet->flow.vip, direction == FROM_CLIENT ? ip->daddr : ip->saddr);
	if (ip->ihl != 5 || ip->frag_off & bpf_htons(FRAGMENT_MASK))
		return PARSED_EXTENDED;
	/* 0: merged or not yet cut into segments, and longer than the field can tell. */
	total_bytes = bpf_ntohs(ip->tot_len);
	if (total_bytes == 0)
		total_bytes = skb->len - sizeof(struct ethhdr);
	if (total_bytes < sizeof(*ip) || total_bytes > skb->len - sizeof(struct ethhdr))
		return PARSED_MALFORMED;
	packet->v6 = false;
	return parse_tcp((void *)(ip + 1), end, total_bytes - sizeof(*ip), direction, packet);
}

ALWAYS_INLINE enum parsed parse_v6(struct __sk_buff *skb, void *at, void *end, enum direction direction,
				   struct packet *packet)
{
	struct ipv6hdr *ip = at;
	__u32 payload_bytes;

	if ((void *)(ip + 1) > end)
		return PARSED_SHORT;
	if (ip->version != 6)
		return PARSED_MALFORMED;
	set_v6(packet->flow.client, direction == FROM_CLIENT ? &ip->saddr : &ip->daddr);
	set_v6(packet->flow.vip, direction == FROM_CLIENT ? &ip->daddr : &ip->saddr);
	if (is_extension(ip->nexthdr))
		return PARSED_EXTENDED;
	if (ip->nexthdr != PROTOCOL_TCP)
		return PARSED_OTHER;
	payload_bytes = bpf_ntohs(ip->payload_len);
	if (payload_bytes == 0)
		payload_bytes = skb->len - sizeof(struct ethhdr) - sizeof(*ip);
	if (payload_bytes > skb->len - sizeof(struct ethhdr) - sizeof(*ip))
		return PARSED_MALFORMED;
	packet->v6 = true;
	return parse_tcp((void *)(ip + 1), end, payload_bytes, direction, packet);
}

ALWAYS_INLINE enum parsed parse_linear(struct __sk_buff *skb, enum direction direction, struct packet *packet)
{
	void *data = (void *)(long)skb->data;
	void *end = (void *)(long)skb->data_end;
	struct ethhdr *ethernet = data;

	if ((void *)(ethernet + 1) > end)
		return PARSED_SHORT;
	/* A frame with a VLAN tag is for an interface of that VLAN, which has its own programs and sees it without. */
	if (skb->vlan_present)
		return PARSED_OTHER;
	if (ethernet->h_proto == bpf_htons(ETH_P_IP))
		return parse_v4(skb, ethernet + 1, end, direction, packet);
	if (ethernet->h_proto == bpf_htons(ETH_P_IPV6))
		return parse_v6(skb, ethernet + 1, end, direction, packet);
	return PARSED_OTHER;
}

/* Fills `packet` as far as the answer says. Pointers into the frame that the caller has are void afterwards. */
ALWAYS_INLINE enum parsed parse(struct __sk_buff *skb, enum direction direction, struct packet *packet)
{
	enum parsed parsed = parse_linear(skb, direction, packet);

	if (parsed == PARSED_SHORT) {
		if (bpf_skb_pull_data(skb, skb->len < HEADERS_BYTES ? skb->len : HEADERS_BYTES))
			return PARSED_MALFORMED;
		parsed = parse_linear(skb, direction, packet);
	}
	if (parsed == PARSED_EXTENDED)
		parsed = parse_extended(skb, direction, packet);
	return parsed == PARSED_SHORT ? PARSED_MALFORMED : parsed;
}

ALWAYS_INLINE bool opens_connection(const struct packet *packet)
{
	return (packet->flags & (TCP_SYN | TCP_ACK)) == TCP_SYN;
}
