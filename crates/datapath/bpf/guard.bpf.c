// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * On a back-end. Inbound, a packet for a virtual address that no socket of ours expects is held for the agent, instead of
 * being answered with a reset. Outbound, only connections with a lease may speak from a virtual address.
 */

#include "parse.h"
#include "socket.h"

#define HOLD_COUNTERS guard_counters
#include "hold.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2 * MAX_VIPS);
	__type(key, struct vip_key);
	__type(value, __u32);
} plimsoll_vips SEC(".maps");

/* Not LRU: a connection whose lease was pushed out would fall silent. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct flow_key);
	__type(value, struct lease);
} plimsoll_leases SEC(".maps");

COUNTERS(guard_counters) plimsoll_counts SEC(".maps");

ALWAYS_INLINE bool is_vip(const struct flow_key *flow, __be16 port)
{
	struct vip_key key = { .port = port };

	__builtin_memcpy(key.address, flow->vip, sizeof(key.address));
	return bpf_map_lookup_elem(&plimsoll_vips, &key) != NULL;
}

/* State of this network namespace's socket of the connection, if it is past its handshake. */
ALWAYS_INLINE __u32 socket_state(struct __sk_buff *skb, const struct packet *packet)
{
	__u32 state = state_of_socket(skb, packet);

	return state == STATE_LISTEN || state == STATE_NEW_SYN_RECV ? STATE_NONE : state;
}

ALWAYS_INLINE void count_strange(enum parsed parsed, struct guard_counters *counts)
{
	if (parsed == PARSED_FIRST_FRAGMENT || parsed == PARSED_LATER_FRAGMENT)
		counts->fragments++;
	else if (parsed == PARSED_OPTIONS)
		counts->options++;
	else if (parsed == PARSED_MALFORMED)
		counts->malformed++;
}

/*
 * A SYN for which there is no socket. Connections begin at the front-end, so it goes back there if a connection of this flow
 * was here: a client that uses the port again need not wait until we have told of the end. A lease shows that: a connection
 * gets it when its socket is there, and loses it before the socket goes, if another machine is to have it.
 */
ALWAYS_INLINE int send_back(struct __sk_buff *skb, const struct packet *packet, struct guard_counters *counts)
{
	struct lease *lease = bpf_map_lookup_elem(&plimsoll_leases, &packet->flow);
	void *data = (void *)(long)skb->data;
	void *end = (void *)(long)skb->data_end;
	struct ethhdr *ethernet = data;
	__u8 ours[ETH_ALEN];

	if (!lease || (void *)(ethernet + 1) > end) {
		counts->syn_dropped++;
		return TC_ACT_SHOT;
	}
	__builtin_memcpy(ours, ethernet->h_dest, ETH_ALEN);
	__builtin_memcpy(ethernet->h_dest, ethernet->h_source, ETH_ALEN);
	__builtin_memcpy(ethernet->h_source, ours, ETH_ALEN);
	counts->syn_returned++;
	return bpf_redirect(skb->ifindex, 0);
}

SEC("tc")
int plimsoll_in(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct guard_counters *counts = bpf_map_lookup_elem(&plimsoll_counts, &zero);
	struct packet packet = {};
	enum parsed parsed;
	__u32 state;

	if (!counts || skb->pkt_type != FOR_THIS_HOST)
		return TC_ACT_UNSPEC;
	parsed = parse(skb, FROM_CLIENT, &packet);
	if (parsed != PARSED_TCP)
		count_strange(parsed, counts);
	/* The kernel keeps a later fragment until it has the first, which is held until there is a socket. */
	if (parsed != PARSED_TCP && parsed != PARSED_FIRST_FRAGMENT)
		return TC_ACT_UNSPEC;
	if (!is_vip(&packet.flow, packet.flow.vip_port))
		return TC_ACT_UNSPEC;
	state = socket_state(skb, &packet);
	/*
	 * Connections begin at the front-end only. A socket answers a SYN with a challenge (RFC 5961, section 4), but one
	 * that only waits for late packets may give way to a listener.
	 */
	if (opens_connection(&packet) && (state == STATE_NONE || state == STATE_TIME_WAIT))
		return send_back(skb, &packet, counts);
	if (state != STATE_NONE) {
		counts->passed++;
		return TC_ACT_UNSPEC;
	}
	hold(skb, &packet, counts);
	return TC_ACT_SHOT;
}

ALWAYS_INLINE int fence(const struct flow_key *flow, struct guard_counters *counts)
{
	struct lease *lease = bpf_map_lookup_elem(&plimsoll_leases, flow);
	__u64 now = bpf_ktime_get_ns();

	if (!lease) {
		counts->fenced_unknown++;
		return TC_ACT_SHOT;
	}
	if (now > lease->until_ns) {
		counts->fenced_late++;
		return TC_ACT_SHOT;
	}
	lease->last_sent_ns = now;
	counts->sent++;
	return TC_ACT_UNSPEC;
}

SEC("tc")
int plimsoll_out(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct guard_counters *counts = bpf_map_lookup_elem(&plimsoll_counts, &zero);
	struct packet packet = {};
	enum parsed parsed;

	if (!counts)
		return TC_ACT_UNSPEC;
	parsed = parse(skb, TO_CLIENT, &packet);
	if (parsed == PARSED_TCP)
		return is_vip(&packet.flow, packet.flow.vip_port) ? fence(&packet.flow, counts) : TC_ACT_UNSPEC;
	/* Its port is unknown, so its lease is: nothing that may belong to a connection gets past. */
	if (parsed == PARSED_OTHER || !is_vip(&packet.flow, 0))
		return TC_ACT_UNSPEC;
	count_strange(parsed, counts);
	counts->fenced_unknown++;
	return TC_ACT_SHOT;
}

char LICENSE[] SEC("license") = "GPL";
