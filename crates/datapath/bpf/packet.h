/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the packet programs know of a packet. */
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

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10

enum parsed {
	PARSED_TCP,
	PARSED_OTHER,          /* neither IPv4 nor IPv6 with TCP */
	PARSED_FIRST_FRAGMENT, /* with the TCP header */
	PARSED_LATER_FRAGMENT, /* addresses are known, ports are not */
	PARSED_OPTIONS,        /* extension headers that are not understood: the same */
	PARSED_MALFORMED,      /* lengths that contradict one another */
	PARSED_SHORT,          /* headers are not in the linear part */
	PARSED_EXTENDED,       /* for `parse_extended` */
};

struct packet {
	struct flow_key flow;
	__u32 seq;
	__u32 ack;
	__u32 payload_bytes;
	__u32 fragment_id; /* of fragments */
	__u16 window;      /* not shifted */
	__u8 flags;        /* TCP_* */
	bool v6;
};

/* Which end of the packet is the client's. */
enum direction { FROM_CLIENT, TO_CLIENT };

/* `bytes`: the TCP header and what it carries. */
ALWAYS_INLINE enum parsed read_tcp(const struct tcphdr *tcp, __u32 bytes, enum direction direction,
				   struct packet *packet)
{
	__u32 header_bytes = tcp->doff * 4;

	if (header_bytes < sizeof(*tcp) || header_bytes > bytes)
		return PARSED_MALFORMED;
	packet->flow.client_port = direction == FROM_CLIENT ? tcp->source : tcp->dest;
	packet->flow.vip_port = direction == FROM_CLIENT ? tcp->dest : tcp->source;
	packet->seq = bpf_ntohl(tcp->seq);
	packet->ack = bpf_ntohl(tcp->ack_seq);
	packet->payload_bytes = bytes - header_bytes;
	packet->window = bpf_ntohs(tcp->window);
	packet->flags = ((__u8 *)tcp)[13];
	return PARSED_TCP;
}
