/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * From a frame to a connection, for XDP and for tc: Ethernet with at most one VLAN tag, IPv4 or IPv6, TCP or UDP, or an
 * ICMP error about these. Plain headers are read where they are, rare ones by copies.
 */
#pragma once

#include <linux/udp.h>

#include "icmp.h"
#include "switch_structs.h"

#define PROTOCOL_UDP 17
#define VLAN_BYTES 4

#ifdef SWITCH_XDP
#define CONTEXT struct xdp_md
#define LOAD bpf_xdp_load_bytes
#define STORE bpf_xdp_store_bytes
#define PASS XDP_PASS
#define DROP XDP_DROP
#else
#define CONTEXT struct __sk_buff
#define LOAD bpf_skb_load_bytes
#define STORE(context, offset, from, bytes) bpf_skb_store_bytes(context, offset, from, bytes, 0)
#define PASS TC_ACT_UNSPEC
#define DROP TC_ACT_SHOT
#endif

enum seen {
	SEEN_OTHER,	     /* nothing for us */
	SEEN_PACKET,	     /* of a connection */
	SEEN_FIRST_FRAGMENT, /* with the ports */
	SEEN_LATER_FRAGMENT, /* addresses, protocol and number are known */
	SEEN_ERROR,	     /* of a router, about a connection */
	SEEN_OPTIONS,	     /* extension headers that are not understood */
	SEEN_MALFORMED,	     /* lengths that contradict one another */
	SEEN_RARE,	     /* to be read by copies */
};

struct sight {
	struct conn_key key;
	__u32 frame_bytes;
	__u32 ip_offset;
	__u32 payload_offset;
	__u32 payload_bytes;
	__u32 fragment_id;
	__u32 seq;
	__u32 ack;
	__u32 round_trip_us; /* of its connection, once that was looked up; 0: unknown */
	__u8 flags;	     /* TCP_* */
	bool is_virtual;     /* XDP: it has come by a virtual interface */
	bool is_error;	     /* a router's, about a packet of the connection */
	bool is_known;	     /* its connection is in a table, and its numbers are near those that its client has used */
};

struct vlan_tag {
	__be16 id;
	__be16 protocol;
};

ALWAYS_INLINE __u32 frame_bytes(CONTEXT *context)
{
#ifdef SWITCH_XDP
	return context->data_end - context->data;
#else
	return context->len;
#endif
}

/* Whether there is a tag that the kernel has taken out of the frame. */
ALWAYS_INLINE bool has_tag_beside(CONTEXT *context)
{
#ifdef SWITCH_XDP
	(void)context;
	return false;
#else
	return context->vlan_present;
#endif
}

ALWAYS_INLINE bool is_tag(__be16 protocol)
{
	return protocol == bpf_htons(ETH_P_8021Q) || protocol == bpf_htons(ETH_P_8021AD);
}

/* `bytes`: what there is of the packet from the TCP or UDP header on, which begins at `offset`. */
ALWAYS_INLINE enum seen see_tcp(const struct tcphdr *tcp, __u32 offset, __u32 bytes, struct sight *sight)
{
	__u32 header_bytes = tcp->doff * 4;

	if (header_bytes < sizeof(*tcp) || header_bytes > bytes)
		return SEEN_MALFORMED;
	sight->key.flow.client_port = tcp->source;
	sight->key.flow.vip_port = tcp->dest;
	sight->seq = bpf_ntohl(tcp->seq);
	sight->ack = bpf_ntohl(tcp->ack_seq);
	sight->flags = ((const __u8 *)tcp)[13];
	sight->payload_offset = offset + header_bytes;
	sight->payload_bytes = bytes - header_bytes;
	return SEEN_PACKET;
}

/* Of a fragment, the length in the header is longer than what there is. */
ALWAYS_INLINE enum seen see_udp(const struct udphdr *udp, __u32 offset, __u32 bytes, struct sight *sight)
{
	if (bytes < sizeof(*udp))
		return SEEN_MALFORMED;
	sight->key.flow.client_port = udp->source;
	sight->key.flow.vip_port = udp->dest;
	sight->flags = 0;
	sight->payload_offset = offset + sizeof(*udp);
	sight->payload_bytes = bytes - sizeof(*udp);
	return SEEN_PACKET;
}

/* `at` is where `offset` is. */
ALWAYS_INLINE enum seen see_ports(void *at, void *end, __u32 offset, __u32 bytes, struct sight *sight)
{
	if (sight->key.protocol == PROTOCOL_TCP) {
		struct tcphdr *tcp = at;

		return (void *)(tcp + 1) > end ? SEEN_RARE : see_tcp(tcp, offset, bytes, sight);
	} else {
		struct udphdr *udp = at;

		return (void *)(udp + 1) > end ? SEEN_RARE : see_udp(udp, offset, bytes, sight);
	}
}

ALWAYS_INLINE bool has_ports(__u8 protocol)
{
	return protocol == PROTOCOL_TCP || protocol == PROTOCOL_UDP;
}

ALWAYS_INLINE enum seen see_v4(struct iphdr *ip, void *end, struct sight *sight)
{
	__u32 most_bytes = sight->frame_bytes - sight->ip_offset;
	__u32 bytes;

	if ((void *)(ip + 1) > end)
		return SEEN_RARE;
	if (ip->version != 4 || ip->ihl < 5)
		return SEEN_MALFORMED;
	set_v4(sight->key.flow.client, ip->saddr);
	set_v4(sight->key.flow.vip, ip->daddr);
	sight->key.protocol = ip->protocol;
	if (!has_ports(ip->protocol) || ip->ihl != 5 || ip->frag_off & bpf_htons(FRAGMENT_MASK))
		return SEEN_RARE;
	/* 0: merged or not yet cut into segments, and longer than the field can tell. */
	bytes = bpf_ntohs(ip->tot_len);
	if (bytes == 0)
		bytes = most_bytes;
	if (bytes < sizeof(*ip) || bytes > most_bytes)
		return SEEN_MALFORMED;
	return see_ports(ip + 1, end, sight->ip_offset + sizeof(*ip), bytes - sizeof(*ip), sight);
}

ALWAYS_INLINE enum seen see_v6(struct ipv6hdr *ip, void *end, struct sight *sight)
{
	__u32 most_bytes = sight->frame_bytes - sight->ip_offset - sizeof(*ip);
	__u32 bytes;

	if ((void *)(ip + 1) > end)
		return SEEN_RARE;
	if (ip->version != 6)
		return SEEN_MALFORMED;
	set_v6(sight->key.flow.client, &ip->saddr);
	set_v6(sight->key.flow.vip, &ip->daddr);
	sight->key.protocol = ip->nexthdr;
	if (!has_ports(ip->nexthdr))
		return SEEN_RARE;
	bytes = bpf_ntohs(ip->payload_len);
	if (bytes == 0)
		bytes = most_bytes;
	if (bytes > most_bytes)
		return SEEN_MALFORMED;
	return see_ports(ip + 1, end, sight->ip_offset + sizeof(*ip), bytes, sight);
}

/* The headers as they are in the linear part of the frame. */
ALWAYS_INLINE enum seen see_plain(CONTEXT *context, __be16 *protocol, struct sight *sight)
{
	void *data = (void *)(long)context->data;
	void *end = (void *)(long)context->data_end;
	struct ethhdr *ethernet = data;
	struct vlan_tag *tag = (void *)(ethernet + 1);
	void *ip = tag;

	sight->frame_bytes = frame_bytes(context);
	sight->ip_offset = sizeof(*ethernet);
	if ((void *)(ethernet + 1) > end)
		return SEEN_OTHER;
	*protocol = ethernet->h_proto;
	if (is_tag(*protocol)) {
		if ((void *)(tag + 1) > end || has_tag_beside(context))
			return SEEN_OTHER;
		*protocol = tag->protocol;
		sight->ip_offset += VLAN_BYTES;
		ip = tag + 1;
	}
	if (*protocol == bpf_htons(ETH_P_IP))
		return see_v4(ip, end, sight);
	if (*protocol == bpf_htons(ETH_P_IPV6))
		return see_v6(ip, end, sight);
	return SEEN_OTHER;
}

/* As `see_ports`, by copies; `more`: this is the first of several fragments. */
ALWAYS_INLINE enum seen copy_ports(CONTEXT *context, __u32 offset, __u32 bytes, bool more, struct sight *sight)
{
	enum seen seen;

	if (sight->key.protocol == PROTOCOL_TCP) {
		struct tcphdr tcp;

		if (bytes < sizeof(tcp) || LOAD(context, offset, &tcp, sizeof(tcp)))
			return SEEN_MALFORMED;
		seen = see_tcp(&tcp, offset, bytes, sight);
	} else {
		struct udphdr udp;

		if (bytes < sizeof(udp) || LOAD(context, offset, &udp, sizeof(udp)))
			return SEEN_MALFORMED;
		seen = see_udp(&udp, offset, bytes, sight);
	}
	return seen == SEEN_PACKET && more ? SEEN_FIRST_FRAGMENT : seen;
}

/* An error that a router has sent about a packet from our address: the ports are those of that packet. */
ALWAYS_INLINE enum seen copy_error_ports(CONTEXT *context, __u32 offset, struct sight *sight)
{
	__be16 ports[2];

	if (LOAD(context, offset, ports, sizeof(ports)))
		return SEEN_OTHER;
	sight->key.flow.vip_port = ports[0];
	sight->key.flow.client_port = ports[1];
	sight->is_error = true;
	return SEEN_ERROR;
}

ALWAYS_INLINE enum seen copy_error_v4(CONTEXT *context, __u32 offset, struct sight *sight)
{
	struct iphdr ip;
	__u8 type;

	if (LOAD(context, offset, &type, sizeof(type)) || !is_error_v4(type))
		return SEEN_OTHER;
	offset += ICMP_HEADER_BYTES;
	if (LOAD(context, offset, &ip, sizeof(ip)) || ip.version != 4 || ip.ihl < 5 || !has_ports(ip.protocol) ||
	    ip.frag_off & bpf_htons(FRAGMENT_OFFSET_MASK))
		return SEEN_OTHER;
	set_v4(sight->key.flow.vip, ip.saddr);
	set_v4(sight->key.flow.client, ip.daddr);
	sight->key.protocol = ip.protocol;
	return copy_error_ports(context, offset + ip.ihl * 4, sight);
}

ALWAYS_INLINE enum seen copy_error_v6(CONTEXT *context, __u32 offset, struct sight *sight)
{
	struct ipv6hdr ip;
	__u8 type;

	if (LOAD(context, offset, &type, sizeof(type)) || !is_error_v6(type))
		return SEEN_OTHER;
	offset += ICMP_HEADER_BYTES;
	if (LOAD(context, offset, &ip, sizeof(ip)) || ip.version != 6 || !has_ports(ip.nexthdr))
		return SEEN_OTHER;
	set_v6(sight->key.flow.vip, &ip.saddr);
	set_v6(sight->key.flow.client, &ip.daddr);
	sight->key.protocol = ip.nexthdr;
	return copy_error_ports(context, offset + sizeof(ip), sight);
}

ALWAYS_INLINE enum seen copy_v4(CONTEXT *context, struct sight *sight)
{
	__u32 most_bytes = sight->frame_bytes - sight->ip_offset;
	__u32 header_bytes, bytes;
	struct iphdr ip;

	if (LOAD(context, sight->ip_offset, &ip, sizeof(ip)))
		return SEEN_MALFORMED;
	if (ip.version != 4 || ip.ihl < 5)
		return SEEN_MALFORMED;
	set_v4(sight->key.flow.client, ip.saddr);
	set_v4(sight->key.flow.vip, ip.daddr);
	sight->key.protocol = ip.protocol;
	sight->fragment_id = bpf_ntohs(ip.id);
	header_bytes = ip.ihl * 4;
	if (ip.protocol == PROTOCOL_ICMP && !(ip.frag_off & bpf_htons(FRAGMENT_MASK)))
		return copy_error_v4(context, sight->ip_offset + header_bytes, sight);
	if (!has_ports(ip.protocol))
		return SEEN_OTHER;
	if (ip.frag_off & bpf_htons(FRAGMENT_OFFSET_MASK))
		return SEEN_LATER_FRAGMENT;
	bytes = bpf_ntohs(ip.tot_len);
	if (bytes == 0)
		bytes = most_bytes;
	if (bytes < header_bytes || bytes > most_bytes)
		return SEEN_MALFORMED;
	return copy_ports(context, sight->ip_offset + header_bytes, bytes - header_bytes,
			  ip.frag_off & bpf_htons(FRAGMENT_MORE), sight);
}

ALWAYS_INLINE enum seen copy_v6(CONTEXT *context, struct sight *sight)
{
	__u32 start = sight->ip_offset + sizeof(struct ipv6hdr);
	__u32 most_bytes = sight->frame_bytes - start;
	__u32 offset = start;
	__u32 bytes;
	struct extension extension;
	struct ipv6hdr ip;
	bool more = false;
	__u8 next;
	int i;

	if (LOAD(context, sight->ip_offset, &ip, sizeof(ip)) || ip.version != 6)
		return SEEN_MALFORMED;
	set_v6(sight->key.flow.client, &ip.saddr);
	set_v6(sight->key.flow.vip, &ip.daddr);
	bytes = bpf_ntohs(ip.payload_len);
	if (bytes == 0)
		bytes = most_bytes;
	if (bytes > most_bytes)
		return SEEN_MALFORMED;
	next = ip.nexthdr;
	for (i = 0; i < MOST_EXTENSIONS && !has_ports(next) && next != PROTOCOL_ICMPV6; i++) {
		if (!is_extension(next))
			return SEEN_OTHER;
		if (LOAD(context, offset, &extension, sizeof(extension)))
			return SEEN_MALFORMED;
		switch (step_over(&extension, &next, &offset, &sight->fragment_id, &more)) {
		case STEP_OPTIONS:
			return SEEN_OPTIONS;
		case STEP_LATER:
			sight->key.protocol = next;
			return has_ports(next) ? SEEN_LATER_FRAGMENT : SEEN_OTHER;
		case STEP_ON:
			break;
		}
	}
	sight->key.protocol = next;
	if (next == PROTOCOL_ICMPV6)
		return more ? SEEN_OTHER : copy_error_v6(context, offset, sight);
	if (!has_ports(next))
		return SEEN_OPTIONS;
	if (offset - start > bytes)
		return SEEN_MALFORMED;
	return copy_ports(context, offset, bytes - (offset - start), more, sight);
}

/* Fills `sight` as far as the answer says. Pointers into the frame that the caller has are void afterwards. */
ALWAYS_INLINE enum seen see(CONTEXT *context, struct sight *sight)
{
	__be16 protocol = 0;
	enum seen seen = see_plain(context, &protocol, sight);

#ifndef SWITCH_XDP
	if (seen == SEEN_OTHER && !protocol && context->len >= sizeof(struct ethhdr)) {
		if (bpf_skb_pull_data(context, context->len < HEADERS_BYTES ? context->len : HEADERS_BYTES))
			return SEEN_OTHER;
		seen = see_plain(context, &protocol, sight);
	}
#endif
	if (seen != SEEN_RARE)
		return seen;
	return protocol == bpf_htons(ETH_P_IP) ? copy_v4(context, sight) : copy_v6(context, sight);
}
