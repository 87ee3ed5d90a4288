// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * The packet router of Socket Cloning, tc ingress of each node. While a clone at another node answers on a connection, what the
 * client acknowledges goes on to that node, and tells how far the answer has come; what has a place in the client's stream of
 * bytes stays here, for the original. And what another node sends on to a clone that is no more is dropped, where the kernel
 * would reset the client.
 */

#include "icmp.h"
#include "leading.h"
#include "numbers.h"
#include "parse.h"
#include "socket.h"

#define HOLD_COUNTERS router_counters
#include "hold.h"

/* Not LRU: a connection that was pushed out would be reset. When it is full, requests are answered here. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct flow_key);
	__type(value, struct clone_entry);
} plimsoll_clones SEC(".maps");

/* MAC addresses of the other nodes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_VIPS);
	__type(key, __u64);
	__type(value, __u32);
} plimsoll_nodes SEC(".maps");

COUNTERS(router_counters) plimsoll_counts SEC(".maps");

/* Whether it has bytes, or an end, of what the client sends. A reset that comes when the clone's answer is acknowledged already is for
 * the original, which would wait for a client that is gone. */
ALWAYS_INLINE bool is_of_stream(const struct packet *packet)
{
	return packet->payload_bytes > 0 || packet->flags & (TCP_FIN | TCP_RST);
}

/* Tells once. */
ALWAYS_INLINE void tell_once(struct __sk_buff *skb, struct clone_entry *entry, const struct packet *packet, __u32 mark,
			     __u32 what, struct router_counters *counts)
{
	if (!(__sync_fetch_and_or(&entry->seen, mark) & mark))
		tell(skb, packet, what, counts);
}

/* A RST counts with the number that a kernel asks for (RFC 5961, section 3.2). */
ALWAYS_INLINE void note_reset(struct __sk_buff *skb, struct clone_entry *entry, const struct packet *packet,
			      struct router_counters *counts)
{
	if (packet->seq != entry->expected_seq)
		return;
	counts->resets++;
	tell_once(skb, entry, packet, CLONE_RESET, TOLD_RESET, counts);
}

/* Whether the packet's number lets it be the client's. */
ALWAYS_INLINE bool is_near(const struct clone_entry *entry, const struct packet *packet)
{
	return packet->seq - entry->expected_seq + entry->our_window <= 2 * entry->our_window;
}

/*
 * What the client says of the answer. False for an acknowledgment of what nobody can have sent: beyond the answer, or beyond the
 * windows that the client has ever announced.
 */
ALWAYS_INLINE bool note_ack(struct clone_entry *entry, const struct packet *packet)
{
	__u32 last_ack = (__u32)read_word(&entry->last_ack);
	__u64 end = read_word(&entry->end);
	__u32 window = (__u32)packet->window << (entry->client_scale & 15);
	__u32 limit = end ? (__u32)end : entry->edge;

	if ((__s32)(packet->ack - last_ack) < 0)
		return true;
	if ((__s32)(packet->ack - limit) > 0)
		return false;
	raise(&entry->last_ack, packet->ack);
	entry->client_window = window;
	if ((__s32)(packet->ack + window - entry->edge) > 0)
		entry->edge = packet->ack + window;
	return true;
}

/* Whether the packet may go on. */
ALWAYS_INLINE bool note(struct __sk_buff *skb, struct clone_entry *entry, const struct packet *packet,
			struct router_counters *counts)
{
	__u64 end;

	/* The clone's kernel judges it, as long as there is one. */
	if (packet->flags & TCP_SYN) {
		if (!(packet->flags & TCP_ACK))
			__sync_fetch_and_or(&entry->seen, CLONE_BEGUN_ANEW);
		return true;
	}
	if (!(entry->seen & CLONE_NUMBERED))
		return true;
	if (packet->flags & TCP_RST) {
		note_reset(skb, entry, packet, counts);
		return true;
	}
	if (!(packet->flags & TCP_ACK) || !is_near(entry, packet))
		return true;
	entry->last_seen_ns = bpf_ktime_get_ns();
	if (!note_ack(entry, packet)) {
		counts->forged++;
		tell_once(skb, entry, packet, CLONE_FORGED, TOLD_FORGED, counts);
		return false;
	}
	/* After the number was raised, which is a barrier, as setting the end is in `plimsoll_expect`: one of both sees the other. */
	end = read_word(&entry->end);
	if (end && (__u32)read_word(&entry->last_ack) == (__u32)end)
		tell_once(skb, entry, packet, CLONE_ACKNOWLEDGED, TOLD_ACKNOWLEDGED, counts);
	return true;
}

/* Whether another node has sent it on. */
ALWAYS_INLINE bool is_of_node(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data;
	void *end = (void *)(long)skb->data_end;
	struct ethhdr *ethernet = data;
	__u64 source = 0;

	if ((void *)(ethernet + 1) > end)
		return false;
	__builtin_memcpy(&source, ethernet->h_source, ETH_ALEN);
	return bpf_map_lookup_elem(&plimsoll_nodes, &source) != NULL;
}

/* Gives the packet to the socket of its connection, if there is one. A clone may go at any moment: the kernel, which would look for a
 * socket again and find none, would reset the client. */
ALWAYS_INLINE bool has_connection(struct __sk_buff *skb, const struct packet *packet)
{
	struct bpf_sock *socket = socket_of(skb, packet);
	__u32 state;

	if (!socket)
		return false;
	state = socket->state;
	if (state == STATE_LISTEN || state == STATE_NEW_SYN_RECV) {
		bpf_sk_release(socket);
		return false;
	}
	/* One that has left meanwhile takes nothing. */
	state = bpf_sk_assign(skb, socket, 0);
	bpf_sk_release(socket);
	return state == 0;
}

/* What is needed to end the connection, should its clone be lost: the numbers that either side expects. */
ALWAYS_INLINE void note_kept(struct clone_entry *entry, const struct packet *packet)
{
	__u32 end = packet->seq + packet->payload_bytes;

	if (!(packet->flags & TCP_ACK) || packet->flags & TCP_SYN || !is_near(entry, packet))
		return;
	if ((__s32)(packet->ack - (__u32)read_word(&entry->last_ack)) > 0)
		raise(&entry->last_ack, packet->ack);
	if ((__s32)(end - entry->expected_seq) > 0)
		entry->expected_seq = end;
}

ALWAYS_INLINE int lead_on(struct __sk_buff *skb, struct clone_entry *entry, __u32 ifindex, struct router_counters *counts)
{
	__sync_fetch_and_add(&entry->packets, 1);
	counts->routed_packets++;
	counts->routed_bytes += skb->len;
	return redirect(skb, &entry->next_hop, ifindex);
}

/* The clone has the connection. */
ALWAYS_INLINE int handle_kept(struct __sk_buff *skb, struct clone_entry *entry, const struct packet *packet,
			      struct router_counters *counts)
{
	__u32 ifindex;

	if (entry->seen & CLONE_CLOSING && packet->flags & TCP_SYN && !(packet->flags & TCP_ACK)) {
		bpf_map_delete_elem(&plimsoll_clones, &packet->flow);
		return TC_ACT_UNSPEC;
	}
	note_kept(entry, packet);
	ifindex = way_out(&entry->next_hop);
	if (ifindex)
		return lead_on(skb, entry, ifindex, counts);
	hold(skb, packet, counts);
	return TC_ACT_SHOT;
}

/* Whether the client begins another connection and no process listens any more: the agent is gone, and the kernel refuses the client.
 * Otherwise the packet would be held for nobody, or sent to a node that drops it. */
ALWAYS_INLINE bool is_to_be_refused(struct __sk_buff *skb, const struct packet *packet)
{
	return packet->flags & TCP_SYN && !(packet->flags & TCP_ACK) && state_of_socket(skb, packet) == STATE_NONE;
}

ALWAYS_INLINE int handle_tcp(struct __sk_buff *skb, const struct packet *packet, struct router_counters *counts)
{
	struct clone_entry *entry;
	__u32 ifindex;

	if (!port_is_ours(packet->flow.vip_port))
		return TC_ACT_UNSPEC;
	entry = bpf_map_lookup_elem(&plimsoll_clones, &packet->flow);
	if (!entry) {
		if (!is_of_node(skb) || has_connection(skb, packet))
			return TC_ACT_UNSPEC;
		counts->late++;
		return TC_ACT_SHOT;
	}
	if (is_to_be_refused(skb, packet))
		return TC_ACT_UNSPEC;
	if (entry->seen & CLONE_KEPT)
		return handle_kept(skb, entry, packet, counts);
	if (!note(skb, entry, packet, counts))
		return TC_ACT_SHOT;
	ifindex = way_out(&entry->next_hop);
	if (!ifindex || is_of_stream(packet)) {
		hold(skb, packet, counts);
		return TC_ACT_SHOT;
	}
	return lead_on(skb, entry, ifindex, counts);
}

/* An error about a packet that the clone has sent is for the clone. */
ALWAYS_INLINE int handle_other(struct __sk_buff *skb, struct router_counters *counts)
{
	struct flow_key flow = {};
	struct clone_entry *entry;

	if (!is_error_of_ours(skb, &flow))
		return TC_ACT_UNSPEC;
	entry = bpf_map_lookup_elem(&plimsoll_clones, &flow);
	return entry ? lead_error(skb, &entry->next_hop, &counts->errors) : TC_ACT_UNSPEC;
}

SEC("tc")
int plimsoll_route(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct router_counters *counts = bpf_map_lookup_elem(&plimsoll_counts, &zero);
	struct packet packet = {};

	if (!counts || skb->pkt_type != FOR_THIS_HOST)
		return TC_ACT_UNSPEC;
	switch (parse(skb, FROM_CLIENT, &packet)) {
	case PARSED_TCP:
		return handle_tcp(skb, &packet, counts);
	case PARSED_OTHER:
		return handle_other(skb, counts);
	case PARSED_FIRST_FRAGMENT:
	case PARSED_LATER_FRAGMENT:
		counts->fragments++;
		break;
	case PARSED_OPTIONS:
		counts->options++;
		break;
	case PARSED_MALFORMED:
		counts->malformed++;
		break;
	default:
		break;
	}
	return TC_ACT_UNSPEC;
}

/* Run by the loader, never by a packet: leads a flow to a clone, or has its packets held (interface 0). 1: there is no such flow. */
SEC("syscall")
int plimsoll_lead(struct turn *turn)
{
	struct flow_key flow = turn->flow;
	struct clone_entry *entry = bpf_map_lookup_elem(&plimsoll_clones, &flow);

	if (!entry)
		return 1;
	if (turn->next_hop.ifindex) {
		entry->next_hop.destination = turn->next_hop.destination;
		entry->next_hop.source = turn->next_hop.source;
	}
	__sync_fetch_and_or(&entry->seen, turn->marks & (CLONE_KEPT | CLONE_CLOSING));
	*(volatile __u32 *)&entry->next_hop.ifindex = turn->next_hop.ifindex;
	return 0;
}

/* Run by the loader: notes where the answer ends. */
SEC("syscall")
int plimsoll_expect(struct expected_end *expected)
{
	struct flow_key flow = expected->flow;
	__u32 end = expected->end;
	struct clone_entry *entry = bpf_map_lookup_elem(&plimsoll_clones, &flow);
	__s32 beyond;

	if (!entry)
		return EXPECT_NO_FLOW;
	__sync_lock_test_and_set(&entry->end, SEEN | end);
	beyond = (__u32)read_word(&entry->last_ack) - end;
	if (beyond < 0)
		return EXPECT_WAIT;
	return beyond == 0 ? EXPECT_THERE : EXPECT_BEYOND;
}

char LICENSE[] SEC("license") = "GPL";
