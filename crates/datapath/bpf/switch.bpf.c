// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * The switch, for XDP (with SWITCH_XDP) and for tc ingress: packets for a service go to the back-end that has their
 * connection, by their MAC addresses alone, or in a tunnel. Answers go past us, straight to the client.
 */

#include "switch_tunnel.h"

ALWAYS_INLINE int forward_plain(CONTEXT *context, const struct switch_backend *backend, const struct sight *sight,
			  struct switch_counters *counts)
{
	struct ethhdr *ethernet;

	if (!set_tag(context, backend, sight))
		return DROP;
	ethernet = (void *)(long)context->data;
	if ((void *)(ethernet + 1) > (void *)(long)context->data_end)
		return DROP;
	set_addresses(ethernet->h_dest, ethernet->h_source, backend);
	counts->forwarded_packets++;
	counts->forwarded_bytes += sight->frame_bytes;
	return send_to(context, sight, backend->ifindex);
}

ALWAYS_INLINE int forward(CONTEXT *context, const struct switch_backend *backend, const struct sight *sight,
			  struct switch_counters *counts)
{
	if (!(backend->flags & BACKEND_PLAIN)) {
		__u32 index = HOLDER_INDEX(backend->holder);
		struct switch_tunnel *tunnel = bpf_map_lookup_elem(&switch_tunnels, &index);

		if (tunnel && tunnel->kind != TUNNEL_NONE)
			return forward_by_tunnel(context, backend, tunnel, sight, counts);
	}
	return forward_plain(context, backend, sight, counts);
}

/* Later fragments of this packet go the same way. */
ALWAYS_INLINE void lead_fragments(const struct sight *sight, __u32 holder)
{
	struct packet_key key;

	set_packet_key(&key, sight);
	bpf_map_update_elem(&switch_fragments, &key, &holder, BPF_ANY);
}

ALWAYS_INLINE void sample(CONTEXT *context, const struct sight *sight, __u32 holder, struct switch_counters *counts)
{
	__u32 zero = 0;
	struct switch_settings *settings = bpf_map_lookup_elem(&switch_settings, &zero);
	__u32 bytes = sight->payload_bytes;
	struct sample *sample;

	if (!settings || !settings->sample_bytes || sight->key.protocol != PROTOCOL_TCP)
		return;
	if (bytes > settings->sample_bytes)
		bytes = settings->sample_bytes;
	if (bytes > SAMPLE_BYTES)
		bytes = SAMPLE_BYTES;
	if (!bytes)
		return;
	sample = bpf_ringbuf_reserve(&switch_samples, sizeof(*sample), 0);
	if (!sample) {
		counts->samples_lost++;
		return;
	}
	sample->at_ns = bpf_ktime_get_ns();
	sample->key = sight->key;
	sample->holder = holder;
	sample->seq = sight->seq;
	sample->payload_bytes = sight->payload_bytes;
	sample->bytes = bytes;
	sample->round_trip_us = sight->round_trip_us;
	/* The verifier wants to see the bounds of the very register that it is given. */
	asm volatile("" : "+r"(bytes));
	if (bytes < 1 || bytes > SAMPLE_BYTES || LOAD(context, sight->payload_offset, sample->payload, bytes)) {
		bpf_ringbuf_discard(sample, 0);
		return;
	}
	bpf_ringbuf_submit(sample, 0);
	counts->samples++;
}

ALWAYS_INLINE int handle_packet(CONTEXT *context, struct sight *sight, bool leads,
				struct switch_counters *counts)
{
	struct switch_conn *conn = find_chosen(&sight->key);
	struct switch_backend *backend;
	__u32 holder;

	/* Connections go on when their service is no longer one, so that one look is enough for most packets. */
	if ((!conn || begins_anew(conn, sight)) && !is_service(&sight->key)) {
		conn = conn ? NULL : find(&sight->key);
		if (!conn || begins_anew(conn, sight))
			return PASS;
	}
	if (leads)
		counts->fragments++;
	backend = place(sight, conn, counts);

	/* This machine has the address, but no socket for the packet: its kernel resets the client. */
	if (!backend) {
		counts->no_backend++;
		return PASS;
	}
	holder = backend->holder;
	count_backend(holder, sight);
	if (leads)
		lead_fragments(sight, holder);
	if (sight->payload_bytes && sight->is_known)
		sample(context, sight, holder, counts);
	return forward(context, backend, sight, counts);
}

/* One that comes before the first of its packet is not led on: TCP sends the packet again. */
ALWAYS_INLINE int handle_later_fragment(CONTEXT *context, const struct sight *sight,
					struct switch_counters *counts)
{
	struct switch_backend *backend;
	struct packet_key key;
	__u32 *holder;

	set_packet_key(&key, sight);
	holder = bpf_map_lookup_elem(&switch_fragments, &key);
	if (!holder) {
		counts->fragments_lost++;
		return PASS;
	}
	counts->fragments++;
	backend = usable_backend(*holder);
	return backend ? forward(context, backend, sight, counts) : PASS;
}

/* Says nothing of the client, so nothing is noted. */
ALWAYS_INLINE int handle_error(CONTEXT *context, const struct sight *sight, struct switch_counters *counts)
{
	struct switch_conn *conn = find(&sight->key);
	struct switch_backend *backend;

	if (!conn)
		conn = bpf_map_lookup_elem(&switch_opening, &sight->key);
	backend = usable_backend(conn ? conn->holder : hashed_holder(&sight->key));
	if (!backend)
		return PASS;
	counts->errors++;
	return forward(context, backend, sight, counts);
}

ALWAYS_INLINE int handle(CONTEXT *context, bool is_virtual)
{
	__u32 zero = 0;
	struct switch_counters *counts = bpf_map_lookup_elem(&switch_counts, &zero);
	struct sight sight = { .is_virtual = is_virtual };
	enum seen seen;

	if (!counts)
		return PASS;
	seen = see(context, &sight);
	if (seen == SEEN_OTHER)
		return PASS;
	if (seen == SEEN_LATER_FRAGMENT)
		return handle_later_fragment(context, &sight, counts);
	if (seen == SEEN_OPTIONS || seen == SEEN_MALFORMED) {
		if (seen == SEEN_OPTIONS)
			counts->options++;
		else
			counts->malformed++;
		return PASS;
	}
	if (seen == SEEN_ERROR)
		return is_service(&sight.key) ? handle_error(context, &sight, counts) : PASS;
	return handle_packet(context, &sight, seen == SEEN_FIRST_FRAGMENT, counts);
}

#ifdef SWITCH_XDP
/* There are few, and the first one is mostly it: cheaper than a table by number. */
ALWAYS_INLINE struct switch_interface *interface_of(__u32 ifindex)
{
	__u32 zero = 0;
	struct switch_interfaces *interfaces = bpf_map_lookup_elem(&switch_interfaces, &zero);
	int i;

	if (!interfaces)
		return NULL;
	for (i = 0; i < MOST_INTERFACES; i++) {
		if (interfaces->all[i].ifindex == ifindex)
			return &interfaces->all[i];
	}
	return NULL;
}

SEC("xdp")
int plimsoll_swx(struct xdp_md *context)
{
	struct ethhdr *ethernet = (void *)(long)context->data;
	struct switch_interface *own = interface_of(context->ingress_ifindex);
	__u64 destination = 0;

	if (!own || (void *)(ethernet + 1) > (void *)(long)context->data_end)
		return XDP_PASS;
	__builtin_memcpy(&destination, ethernet->h_dest, ETH_ALEN);
	/* What is for other machines is none of ours. */
	if (destination != own->address)
		return XDP_PASS;
	return handle(context, own->is_virtual);
}
#else
SEC("tc")
int plimsoll_swt(struct __sk_buff *context)
{
	return context->pkt_type == FOR_THIS_HOST ? handle(context, false) : TC_ACT_UNSPEC;
}
#endif

char LICENSE[] SEC("license") = "GPL";
