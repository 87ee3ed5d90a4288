/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Sockets of this network namespace. */
#pragma once

#include "packet.h"

/* States of a socket (include/net/tcp_states.h). 0 is of none. */
#define STATE_NONE 0
#define STATE_TIME_WAIT 6
#define STATE_LISTEN 10
#define STATE_NEW_SYN_RECV 12

/* The socket that gets the packet: that of its connection, or a listener. Null if there is neither; else it is to be released. */
ALWAYS_INLINE struct bpf_sock *socket_of(struct __sk_buff *skb, const struct packet *packet)
{
	struct bpf_sock_tuple tuple = {};

	if (packet->v6) {
		__builtin_memcpy(tuple.ipv6.saddr, packet->flow.client, sizeof(tuple.ipv6.saddr));
		__builtin_memcpy(tuple.ipv6.daddr, packet->flow.vip, sizeof(tuple.ipv6.daddr));
		tuple.ipv6.sport = packet->flow.client_port;
		tuple.ipv6.dport = packet->flow.vip_port;
		return bpf_skc_lookup_tcp(skb, &tuple, sizeof(tuple.ipv6), BPF_F_CURRENT_NETNS, 0);
	} else {
		tuple.ipv4.saddr = packet->flow.client[3];
		tuple.ipv4.daddr = packet->flow.vip[3];
		tuple.ipv4.sport = packet->flow.client_port;
		tuple.ipv4.dport = packet->flow.vip_port;
		return bpf_skc_lookup_tcp(skb, &tuple, sizeof(tuple.ipv4), BPF_F_CURRENT_NETNS, 0);
	}
}

/* Its state. */
ALWAYS_INLINE __u32 state_of_socket(struct __sk_buff *skb, const struct packet *packet)
{
	struct bpf_sock *socket = socket_of(skb, packet);
	__u32 state;

	if (!socket)
		return STATE_NONE;
	state = socket->state;
	bpf_sk_release(socket);
	return state;
}
