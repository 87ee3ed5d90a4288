// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/* On the front-end, tc ingress: packets of a connection that a back-end has go there, by their MAC addresses alone. */

#include "icmp.h"
#include "leading.h"
#include "numbers.h"
#include "parse.h"
#include "socket.h"

/*
 * Not LRU: that would push out a connection that is idle but alive, and its client would be reset. When it is full,
 * the front-end proxies instead.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct flow_key);
	__type(value, struct flow_entry);
} plimsoll_flows SEC(".maps");

/* Where the first fragment of a packet went: later ones have no ports. LRU, as many of them are lost. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct fragment_key);
	__type(value, struct next_hop);
} plimsoll_fragments SEC(".maps");

COUNTERS(forwarder_counters) plimsoll_counts SEC(".maps");

/*
 * Whether packets of connections that nobody here knows are dropped: 1 while another front-end may still be the one that
 * has the virtual address, or agents have not offered all connections. Not pinned: each process has its own.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} plimsoll_hold SEC(".maps");

/* The number after the last one that the packet covers. */
ALWAYS_INLINE __u32 seq_end(const struct packet *packet)
{
	return packet->seq + packet->payload_bytes + (packet->flags & TCP_FIN ? 1 : 0);
}

/*
 * Whether the packet can be the client's. As a kernel does (RFC 9293, section 3.10.7.4; RFC 5961), it asks for numbers within
 * the windows, and for the exact one of a RST. A RST that comes after lost data and so is not believed does no harm: the
 * back-end's kernel says what it expects, and the client repeats it.
 */
ALWAYS_INLINE bool is_believed(const struct flow_entry *entry, const struct packet *packet)
{
	__u64 last_seq_end = read_word(&entry->last_seq_end);

	/* Of another connection, or forged: the back-end's kernel finds out. */
	if (packet->flags & TCP_SYN)
		return false;
	if (packet->flags & TCP_RST)
		return !last_seq_end || packet->seq == (__u32)last_seq_end;
	return packet->flags & TCP_ACK && within(last_seq_end, seq_end(packet), entry->our_window) &&
	       within(read_word(&entry->last_ack), packet->ack, entry->client_window);
}

/* What the packet's flags and numbers say of the client. */
ALWAYS_INLINE void note(struct flow_entry *entry, const struct packet *packet)
{
	__u32 window = (__u32)packet->window << (entry->client_scale & 15);

	entry->last_seen_ns = bpf_ktime_get_ns();
	/* A RST's other numbers say nothing about what the client has sent or seen. */
	if (packet->flags & TCP_RST) {
		__sync_fetch_and_or(&entry->seen, FLOW_RST);
		return;
	}
	if (packet->flags & TCP_FIN)
		__sync_fetch_and_or(&entry->seen, FLOW_FIN);
	raise(&entry->last_seq_end, seq_end(packet));
	__sync_fetch_and_add(&entry->acked_bytes, raise(&entry->last_ack, packet->ack));
	if (entry->client_window && window > entry->client_window)
		entry->client_window = window;
}

/* A packet that is not believed counts, but says nothing: however often it is repeated, it keeps no flow. */
ALWAYS_INLINE void track(struct flow_entry *entry, const struct packet *packet, __u32 bytes)
{
	if (is_believed(entry, packet))
		note(entry, packet);
	__sync_fetch_and_add(&entry->packets, 1);
	__sync_fetch_and_add(&entry->bytes, bytes);
}

/* Whether the back-end that has the flow has sent this packet of its client back to us. */
ALWAYS_INLINE bool comes_back(struct __sk_buff *skb, const struct flow_entry *entry)
{
	void *data = (void *)(long)skb->data;
	void *end = (void *)(long)skb->data_end;
	struct ethhdr *ethernet = data;
	__u64 source = 0;

	if ((void *)(ethernet + 1) > end)
		return false;
	__builtin_memcpy(&source, ethernet->h_source, ETH_ALEN);
	return source == entry->next_hop.destination;
}

/*
 * Whether a SYN that the back-end has sent back begins a connection anew. The back-end only says that it has no socket of
 * the flow any more, perhaps of an earlier connection, while the latest is still on its way there: so the client must have
 * ended this one. A FIN leaves a socket that waits for late packets, which gives way to a SYN beyond them (RFC 9293,
 * section 3.10.7.4); otherwise the client has to wait until the back-end has told that the connection is over.
 */
ALWAYS_INLINE bool begins_anew(const struct flow_entry *entry, const struct packet *packet)
{
	__u32 last_seq_end = (__u32)read_word(&entry->last_seq_end);

	if (entry->seen & FLOW_RST)
		return true;
	return entry->seen & FLOW_FIN && (__s32)(packet->seq - last_seq_end) > 0;
}

ALWAYS_INLINE void set_fragment_key(struct fragment_key *key, const struct packet *packet)
{
	__builtin_memcpy(key->client, packet->flow.client, sizeof(key->client));
	__builtin_memcpy(key->vip, packet->flow.vip, sizeof(key->vip));
	key->id = packet->fragment_id;
}

/* Later fragments of this packet go the same way. */
ALWAYS_INLINE void lead_fragments(const struct packet *packet, const struct next_hop *hop)
{
	struct fragment_key key;
	struct next_hop copy = *hop;

	set_fragment_key(&key, packet);
	bpf_map_update_elem(&plimsoll_fragments, &key, &copy, BPF_ANY);
}

/* An earlier packet of this number may have gone elsewhere. */
ALWAYS_INLINE void forget_fragments(const struct packet *packet)
{
	struct fragment_key key;

	set_fragment_key(&key, packet);
	bpf_map_delete_elem(&plimsoll_fragments, &key);
}

/*
 * Whether this machine would answer with a RST, as it has a listener for the packet, but neither the flow nor a socket: the
 * connection may be one that an agent has and has not offered yet. A packet that opens a connection is never held.
 */
ALWAYS_INLINE bool is_held(struct __sk_buff *skb, const struct packet *packet)
{
	__u32 zero = 0;
	__u32 *hold = bpf_map_lookup_elem(&plimsoll_hold, &zero);

	if (!hold || !*(const volatile __u32 *)hold || opens_connection(packet))
		return false;
	return state_of_socket(skb, packet) == STATE_LISTEN;
}

ALWAYS_INLINE int handle_tcp(struct __sk_buff *skb, const struct packet *packet, bool is_fragment,
			     struct forwarder_counters *counts)
{
	struct flow_entry *entry;
	__u32 ifindex;

	if (!port_is_ours(packet->flow.vip_port))
		return TC_ACT_UNSPEC;
	entry = bpf_map_lookup_elem(&plimsoll_flows, &packet->flow);
	if (!entry) {
		counts->unknown++;
		return is_held(skb, packet) ? TC_ACT_SHOT : TC_ACT_UNSPEC;
	}
	ifindex = way_out(&entry->next_hop);
	/*
	 * The client uses the port again. Only the back-end knows that the connection which the entry stood for is no
	 * more: anyone can send this, and a FIN or RST before it. While it has not said so, this is led on, and the
	 * back-end's kernel challenges it (RFC 5961, section 4), if it has the connection. If it has not, this comes back.
	 */
	if (opens_connection(packet)) {
		bool back = ifindex && comes_back(skb, entry);

		if (entry->seen & FLOW_OVER || (back && begins_anew(entry, packet))) {
			if (bpf_map_delete_elem(&plimsoll_flows, &packet->flow) == 0)
				counts->syn_removed++;
			return TC_ACT_UNSPEC;
		}
		/* The client repeats it, and by then the back-end has told what it knows. */
		if (back)
			return TC_ACT_SHOT;
	}
	track(entry, packet, skb->len);
	if (!ifindex)
		return TC_ACT_UNSPEC;
	if (is_fragment)
		lead_fragments(packet, &entry->next_hop);
	counts->forwarded_packets++;
	counts->forwarded_bytes += skb->len;
	return redirect(skb, &entry->next_hop, ifindex);
}

ALWAYS_INLINE int handle_first_fragment(struct __sk_buff *skb, const struct packet *packet,
					struct forwarder_counters *counts)
{
	counts->fragments++;
	forget_fragments(packet);
	return handle_tcp(skb, packet, true, counts);
}

/* One that comes before the first of its packet is not led on: the client sends the packet again. */
ALWAYS_INLINE int handle_later_fragment(struct __sk_buff *skb, const struct packet *packet,
					struct forwarder_counters *counts)
{
	struct fragment_key key;
	struct next_hop *hop;

	counts->fragments++;
	set_fragment_key(&key, packet);
	hop = bpf_map_lookup_elem(&plimsoll_fragments, &key);
	if (!hop || !hop->ifindex)
		return TC_ACT_UNSPEC;
	counts->forwarded_packets++;
	counts->forwarded_bytes += skb->len;
	return redirect(skb, hop, hop->ifindex);
}

/* Nothing is noted in the entry. */
ALWAYS_INLINE int handle_other(struct __sk_buff *skb, struct forwarder_counters *counts)
{
	struct flow_key flow = {};
	struct flow_entry *entry;

	if (!is_error_of_ours(skb, &flow))
		return TC_ACT_UNSPEC;
	entry = bpf_map_lookup_elem(&plimsoll_flows, &flow);
	return entry ? lead_error(skb, &entry->next_hop, &counts->errors) : TC_ACT_UNSPEC;
}

SEC("tc")
int plimsoll_fwd(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct forwarder_counters *counts = bpf_map_lookup_elem(&plimsoll_counts, &zero);
	struct packet packet = {};

	if (!counts || skb->pkt_type != FOR_THIS_HOST)
		return TC_ACT_UNSPEC;
	switch (parse(skb, FROM_CLIENT, &packet)) {
	case PARSED_TCP:
		return handle_tcp(skb, &packet, false, counts);
	case PARSED_FIRST_FRAGMENT:
		return handle_first_fragment(skb, &packet, counts);
	case PARSED_LATER_FRAGMENT:
		return handle_later_fragment(skb, &packet, counts);
	case PARSED_OTHER:
		return handle_other(skb, counts);
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

/*
 * Run by the loader, never by a packet: leads a flow elsewhere and leaves alone what is known of the client, which a
 * look-up and an update from outside would set back if a packet came in between. An interface 0 leads it to this machine.
 * Answers 1 when there is no such flow.
 */
SEC("syscall")
int plimsoll_turn(struct turn *turn)
{
	struct flow_key flow = turn->flow;
	struct flow_entry *entry = bpf_map_lookup_elem(&plimsoll_flows, &flow);

	if (!entry)
		return 1;
	/* This machine has no address to be sent to; a packet that comes now must not find half of one. */
	if (!turn->next_hop.ifindex) {
		entry->next_hop.ifindex = 0;
		return 0;
	}
	entry->next_hop.destination = turn->next_hop.destination;
	entry->next_hop.source = turn->next_hop.source;
	entry->next_hop.ifindex = turn->next_hop.ifindex;
	entry->next_hop.agent = turn->next_hop.agent;
	return 0;
}

/* What the client has sent stays, unless it is too far from what this machine's kernel knows. */
ALWAYS_INLINE void give(__u64 *known, __u32 number, __u32 window)
{
	__u64 found = read_word(known);

	if (!found || !within(found, number, window))
		*(volatile __u64 *)known = GIVEN | number;
}

/*
 * Run by the loader when a connection was frozen: from now on numbers are believed within its windows alone. Answers 1 when
 * there is no such flow.
 */
SEC("syscall")
int plimsoll_windows(struct windows *windows)
{
	struct flow_key flow = windows->flow;
	struct flow_entry *entry = bpf_map_lookup_elem(&plimsoll_flows, &flow);

	if (!entry)
		return 1;
	give(&entry->last_ack, windows->from_us, windows->client_window);
	give(&entry->last_seq_end, windows->from_client, windows->our_window);
	entry->client_scale = windows->client_scale;
	entry->client_window = windows->client_window;
	entry->our_window = windows->our_window;
	/* The end of an earlier connection may have been told since the flow was entered. */
	__sync_fetch_and_and(&entry->seen, ~FLOW_OVER);
	return 0;
}

/* Run by the loader: the back-end has said that the connection is over. Answers 1 when there is no such flow. */
SEC("syscall")
int plimsoll_end(struct ended *ended)
{
	struct flow_key flow = ended->flow;
	struct flow_entry *entry = bpf_map_lookup_elem(&plimsoll_flows, &flow);

	if (!entry)
		return 1;
	__sync_fetch_and_or(&entry->seen, FLOW_OVER);
	return 0;
}

/*
 * Run by the loader: forgets a flow whose client has sent nothing for a while, or a RST. Answers 1, and does nothing, when
 * it has. One system call where a look-up and a removal would be two.
 */
SEC("syscall")
int plimsoll_forget(struct ended *ended)
{
	struct flow_key flow = ended->flow;
	struct flow_entry *entry = bpf_map_lookup_elem(&plimsoll_flows, &flow);
	__u64 last_seen_ns;

	if (!entry)
		return 0;
	/* In this order: a packet may come between the two. */
	last_seen_ns = *(volatile __u64 *)&entry->last_seen_ns;
	if (!(entry->seen & FLOW_RST) && bpf_ktime_get_ns() - last_seen_ns < ended->quiet_ns)
		return 1;
	bpf_map_delete_elem(&plimsoll_flows, &flow);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
