/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* From a frame to a TCP flow: Ethernet, IPv4 without options or IPv6 without extension headers, TCP. */
#pragma once

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>
#include <stdbool.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "maps.h"
#include "structs.h"

#define PROTOCOL_TCP 6
#define FRAGMENT_MASK 0x3fff /* more fragments, or an offset */
#define HEADERS_BYTES (sizeof(struct ethhdr) + sizeof(struct ipv6hdr) + sizeof(struct tcphdr))
#define FOR_THIS_HOST 0 /* PACKET_HOST */

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10

enum parsed {
	PARSED_TCP,
	PARSED_OTHER,     /* neither IPv4 nor IPv6 with TCP */
	PARSED_FRAGMENT,  /* addresses are known, ports are not */
	PARSED_OPTIONS,   /* IP options or extension headers: the same */
	PARSED_MALFORMED, /* lengths that contradict one another */
	PARSED_SHORT,     /* headers are not in the linear part */
};

struct packet {
	struct flow_key flow;
	__u32 seq;
	__u32 ack;
	__u32 payload_bytes;
	__u16 window; /* not shifted */
	__u8 flags;   /* TCP_* */
	bool v6;
};

/* Which end of the packet is the client's. */
enum direction { FROM_CLIENT, TO_CLIENT };

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

/* `ip_payload_bytes`: the TCP header and what it carries, from the IP header, or 0 when that cannot tell. */
ALWAYS_INLINE enum parsed parse_tcp(struct tcphdr *tcp, void *end, __u32 ip_payload_bytes, enum direction direction,
				    struct packet *packet)
{
	__u32 header_bytes;

	if ((void *)(tcp + 1) > end)
		return PARSED_SHORT;
	header_bytes = tcp->doff * 4;
	if (header_bytes < sizeof(*tcp) || header_bytes > ip_payload_bytes)
		return PARSED_MALFORMED;
	packet->flow.client_port = direction == FROM_CLIENT ? tcp->source : tcp->dest;
	packet->flow.vip_port = direction == FROM_CLIENT ? tcp->dest : tcp->source;
	packet->seq = bpf_ntohl(tcp->seq);
	packet->ack = bpf_ntohl(tcp->ack_seq);
	packet->payload_bytes = ip_payload_bytes - header_bytes;
	packet->window = bpf_ntohs(tcp->window);
	packet->flags = ((__u8 *)tcp)[13];
	return PARSED_TCP;
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
	if (ip->frag_off & bpf_htons(FRAGMENT_MASK))
		return PARSED_FRAGMENT;
	if (ip->ihl != 5)
		return PARSED_OPTIONS;
	/* 0: merged or not yet cut into segments, and longer than the field can tell. */
	total_bytes = bpf_ntohs(ip->tot_len);
	if (total_bytes == 0)
		total_bytes = skb->len - sizeof(struct ethhdr);
	if (total_bytes < sizeof(*ip) || total_bytes > skb->len - sizeof(struct ethhdr))
		return PARSED_MALFORMED;
	packet->v6 = false;
	return parse_tcp((void *)(ip + 1), end, total_bytes - sizeof(*ip), direction, packet);
}

/* Next headers after which TCP may still come: hop-by-hop, routing, fragment, authentication, destination options. */
ALWAYS_INLINE bool is_extension(__u8 next)
{
	return next == 0 || next == 43 || next == 44 || next == 51 || next == 60;
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
		return ip->nexthdr == 44 ? PARSED_FRAGMENT : PARSED_OPTIONS;
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

	if (parsed != PARSED_SHORT)
		return parsed;
	if (bpf_skb_pull_data(skb, skb->len < HEADERS_BYTES ? skb->len : HEADERS_BYTES))
		return PARSED_MALFORMED;
	parsed = parse_linear(skb, direction, packet);
	return parsed == PARSED_SHORT ? PARSED_MALFORMED : parsed;
}

ALWAYS_INLINE bool opens_connection(const struct packet *packet)
{
	return (packet->flags & (TCP_SYN | TCP_ACK)) == TCP_SYN;
}
