/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Tunnels from a switch to back-ends behind routers, as both ends know them: IP in IP (RFC 2003, RFC 2473, RFC 4213), or GUE of
 * variant 1, which is an IP packet in a UDP datagram.
 */
#pragma once

#include <linux/types.h>

#define PROTOCOL_IPIP 4
#define PROTOCOL_IP6IP 41
#define GUE_PORT 6080 /* of UDP, as IANA has it */

enum tunnel_kind {
	TUNNEL_NONE,
	TUNNEL_IPIP,
	TUNNEL_GUE,
};

/* IPv4 addresses are IPv4-mapped; both are of one family. */
struct switch_tunnel {
	__u32 local[4];
	__u32 remote[4];
	__u32 kind;
	__u32 most_bytes; /* of an IP packet on the way there */
};

/* Who may send to this machine by a tunnel: the address of a switch, IPv4-mapped for IPv4. */
struct tunnel_source {
	__u32 address[4];
};
