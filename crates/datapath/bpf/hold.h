/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Packets that the program keeps from the kernel's TCP and gives to user space, which injects them again or sends them on.
 * Define HOLD_COUNTERS as the kind of counters, with `held`, `ring_full`, `too_long` and `malformed`.
 */
#pragma once

#include "packet.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} plimsoll_held SEC(".maps");

ALWAYS_INLINE void fill_head(struct held_head *head, struct __sk_buff *skb, const struct packet *packet, __u32 bytes)
{
	head->at_ns = bpf_ktime_get_ns();
	head->frame_bytes = bytes;
	head->ifindex = skb->ifindex;
	head->flow = packet->flow;
	head->told = 0;
}

/* Tells of a packet without it. */
ALWAYS_INLINE void tell(struct __sk_buff *skb, const struct packet *packet, __u32 what, struct HOLD_COUNTERS *counts)
{
	struct held_head *head = bpf_ringbuf_reserve(&plimsoll_held, sizeof(*head), 0);

	if (!head) {
		counts->ring_full++;
		return;
	}
	fill_head(head, skb, packet, 0);
	head->told = what;
	bpf_ringbuf_submit(head, 0);
}

/* Reserves, fills and submits a record of one of the two sizes. */
#define HOLD(record_type, most_bytes)                                                                                  \
	do {                                                                                                           \
		struct record_type *record = bpf_ringbuf_reserve(&plimsoll_held, sizeof(*record), 0);                  \
		if (!record) {                                                                                         \
			counts->ring_full++;                                                                           \
			return;                                                                                        \
		}                                                                                                      \
		fill_head(&record->head, skb, packet, bytes);                                                          \
		barrier_var(bytes);                                                                                    \
		if (bytes < 1 || bytes > (most_bytes) || bpf_skb_load_bytes(skb, 0, record->frame, bytes)) {           \
			bpf_ringbuf_discard(record, 0);                                                                \
			counts->malformed++;                                                                           \
			return;                                                                                        \
		}                                                                                                      \
		bpf_ringbuf_submit(record, 0);                                                                         \
		counts->held++;                                                                                        \
	} while (0)

ALWAYS_INLINE void hold(struct __sk_buff *skb, const struct packet *packet, struct HOLD_COUNTERS *counts)
{
	__u32 bytes = skb->len;

	if (bytes <= HELD_SMALL_BYTES)
		HOLD(held_small, HELD_SMALL_BYTES);
	else if (bytes <= HELD_LARGE_BYTES)
		HOLD(held_large, HELD_LARGE_BYTES);
	else
		counts->too_long++;
}

/*
 * Attached nowhere: the agent runs it for an interface, on held frames, which so enter the stack as if that had just received them. Not an
 * XDP program with live frames: for each run the kernel makes a pool of pages, and looks through all pools when that ends.
 */
SEC("tc")
int plimsoll_receive(struct __sk_buff *skb)
{
	return bpf_clone_redirect(skb, skb->ifindex, BPF_F_INGRESS);
}

/* Attached nowhere: the agent runs it for an interface, on a frame that is to leave by that. */
SEC("tc")
int plimsoll_emit(struct __sk_buff *skb)
{
	return bpf_clone_redirect(skb, skb->ifindex, 0);
}

