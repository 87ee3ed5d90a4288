/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The rare packets whose TCP header does not stand behind a plain IP header: IPv4 options, IPv6 extension headers,
 * fragments. They are read by copies, wherever in the packet they are.
 */
#pragma once

#include "packet.h"

#define FRAGMENT_OFFSET_MASK 0x1fff    /* IPv4, in units of 8 bytes */
#define FRAGMENT_MORE 0x2000           /* IPv4 */
#define FRAGMENT_OFFSET_MASK_V6 0xfff8 /* in bytes */
#define FRAGMENT_MORE_V6 0x0001
#define MOST_EXTENSIONS 8

/* Next headers after which TCP may come. */
#define EXTENSION_HOP_BY_HOP 0
#define EXTENSION_ROUTING 43
#define EXTENSION_FRAGMENT 44
#define EXTENSION_AUTHENTICATION 51
#define EXTENSION_DESTINATION 60

ALWAYS_INLINE bool is_extension(__u8 next)
{
	return next == EXTENSION_HOP_BY_HOP || next == EXTENSION_ROUTING || next == EXTENSION_FRAGMENT ||
	       next == EXTENSION_AUTHENTICATION || next == EXTENSION_DESTINATION;
}

/* `offset`: of the TCP header. `bytes`: what is there from it, in this packet. */
ALWAYS_INLINE enum parsed extended_tcp(struct __sk_buff *skb, __u32 offset, __u32 bytes, bool more,
				       enum direction direction, struct packet *packet)
{
	struct tcphdr tcp;
	enum parsed parsed;

	if (bytes < sizeof(tcp) || bpf_skb_load_bytes(skb, offset, &tcp, sizeof(tcp)))
		return PARSED_MALFORMED;
	parsed = read_tcp(&tcp, bytes, direction, packet);
	return parsed == PARSED_TCP && more ? PARSED_FIRST_FRAGMENT : parsed;
}

ALWAYS_INLINE enum parsed extended_v4(struct __sk_buff *skb, enum direction direction, struct packet *packet)
{
	struct iphdr ip;
	__u32 most_bytes = skb->len - sizeof(struct ethhdr);
	__u32 header_bytes, bytes;

	if (bpf_skb_load_bytes(skb, sizeof(struct ethhdr), &ip, sizeof(ip)))
		return PARSED_MALFORMED;
	packet->v6 = false;
	packet->fragment_id = bpf_ntohs(ip.id);
	if (ip.frag_off & bpf_htons(FRAGMENT_OFFSET_MASK))
		return PARSED_LATER_FRAGMENT;
	header_bytes = ip.ihl * 4;
	bytes = bpf_ntohs(ip.tot_len);
	if (bytes == 0)
		bytes = most_bytes;
	if (bytes < header_bytes || bytes > most_bytes)
		return PARSED_MALFORMED;
	return extended_tcp(skb, sizeof(struct ethhdr) + header_bytes, bytes - header_bytes,
			    ip.frag_off & bpf_htons(FRAGMENT_MORE), direction, packet);
}

/* The first 8 bytes of an extension header. */
struct extension {
	__u8 next;
	__u8 length; /* in units of 8 bytes, without the first 8; not of a fragment header */
	union {
		struct {
			__u8 type;
			__u8 segments_left;
		} routing;
		__be16 fragment_bits;
	};
	__be32 fragment_id;
};

enum extension_step {
	STEP_ON,      /* to what comes next */
	STEP_LATER,   /* it is a fragment, and not the first one */
	STEP_OPTIONS, /* on its way to another machine still; or encapsulated */
};

/* Steps over `extension`, which is of the kind `next` and stands at `offset`. */
ALWAYS_INLINE enum extension_step step_over(const struct extension *extension, __u8 *next, __u32 *offset,
					    __u32 *fragment_id, bool *more)
{
	__u8 kind = *next;

	if (kind == EXTENSION_AUTHENTICATION || (kind == EXTENSION_ROUTING && extension->routing.segments_left))
		return STEP_OPTIONS;
	*next = extension->next;
	if (kind != EXTENSION_FRAGMENT) {
		*offset += (extension->length + 1) * 8;
		return STEP_ON;
	}
	*fragment_id = bpf_ntohl(extension->fragment_id);
	if (extension->fragment_bits & bpf_htons(FRAGMENT_OFFSET_MASK_V6))
		return STEP_LATER;
	*more = extension->fragment_bits & bpf_htons(FRAGMENT_MORE_V6);
	*offset += sizeof(*extension);
	return STEP_ON;
}

ALWAYS_INLINE enum parsed extended_v6(struct __sk_buff *skb, enum direction direction, struct packet *packet)
{
	struct ipv6hdr ip;
	struct extension extension;
	__u32 start = sizeof(struct ethhdr) + sizeof(ip);
	__u32 most_bytes = skb->len - start;
	__u32 offset = start;
	__u32 bytes;
	bool more = false;
	__u8 next;
	int i;

	if (bpf_skb_load_bytes(skb, sizeof(struct ethhdr), &ip, sizeof(ip)))
		return PARSED_MALFORMED;
	packet->v6 = true;
	bytes = bpf_ntohs(ip.payload_len);
	if (bytes == 0)
		bytes = most_bytes;
	if (bytes > most_bytes)
		return PARSED_MALFORMED;
	next = ip.nexthdr;
	for (i = 0; i < MOST_EXTENSIONS && next != PROTOCOL_TCP; i++) {
		if (!is_extension(next))
			return PARSED_OTHER;
		if (bpf_skb_load_bytes(skb, offset, &extension, sizeof(extension)))
			return PARSED_MALFORMED;
		switch (step_over(&extension, &next, &offset, &packet->fragment_id, &more)) {
		case STEP_OPTIONS:
			return PARSED_OPTIONS;
		case STEP_LATER:
			/* What stands first in the whole packet, in each of its fragments. */
			return next == PROTOCOL_TCP || is_extension(next) ? PARSED_LATER_FRAGMENT : PARSED_OTHER;
		case STEP_ON:
			break;
		}
	}
	if (next != PROTOCOL_TCP)
		return PARSED_OPTIONS;
	if (offset - start > bytes)
		return PARSED_MALFORMED;
	return extended_tcp(skb, offset, bytes - (offset - start), more, direction, packet);
}

/* `packet` has the addresses already. */
ALWAYS_INLINE enum parsed parse_extended(struct __sk_buff *skb, enum direction direction, struct packet *packet)
{
	if (skb->protocol == bpf_htons(ETH_P_IP))
		return extended_v4(skb, direction, packet);
	return extended_v6(skb, direction, packet);
}
