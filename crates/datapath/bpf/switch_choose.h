/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Who may get connections: services, back-ends, the consistent hash, and the choices that were made ahead. */
#pragma once

#include "switch_maps.h"

/* How many choices are looked at: those that were withdrawn are passed over. No more are in a ring (MOST_CHOICES). */
#define MOST_TRIES 64

ALWAYS_INLINE bool is_service(const struct conn_key *key)
{
	struct service_key service = { .port = key->flow.vip_port, .protocol = key->protocol };

	__builtin_memcpy(service.address, key->flow.vip, sizeof(service.address));
	return bpf_map_lookup_elem(&switch_services, &service);
}

ALWAYS_INLINE struct switch_backend *backend_at(__u32 index)
{
	return bpf_map_lookup_elem(&switch_backends, &index);
}

ALWAYS_INLINE struct switch_backend *usable_backend(__u32 holder)
{
	struct switch_backend *backend = backend_at(HOLDER_INDEX(holder));

	if (!backend || backend->holder != holder || !(backend->flags & BACKEND_USABLE))
		return NULL;
	return backend;
}

ALWAYS_INLINE void set_packet_key(struct packet_key *key, const struct sight *sight)
{
	__builtin_memcpy(key->client, sight->key.flow.client, sizeof(key->client));
	__builtin_memcpy(key->vip, sight->key.flow.vip, sizeof(key->vip));
	key->id = sight->fragment_id;
	key->protocol = sight->key.protocol;
}

/* The same in every switch, and after every restart. */
ALWAYS_INLINE __u32 table_slot(const struct conn_key *key)
{
	const __u32 *words = (const __u32 *)key;
	__u64 hash = 0;
	int i;

#pragma unroll
	for (i = 0; i < (int)(sizeof(*key) / sizeof(*words)); i++) {
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 32;
	}
	return hash % TABLE_SLOTS;
}

#define NOBODY 0xffffffff

ALWAYS_INLINE __u32 hashed_holder(const struct conn_key *key)
{
	__u32 slot = table_slot(key);
	__u32 *index = bpf_map_lookup_elem(&switch_table, &slot);
	struct switch_backend *backend;

	if (!index || !*index)
		return NOBODY;
	backend = backend_at(*index - 1);
	return backend ? backend->holder : NOBODY;
}

ALWAYS_INLINE void tell(const struct conn_key *key, const struct switch_conn *conn, enum event_kind kind, __u64 at_ns,
			__u64 round_trip_ns, struct switch_counters *counts)
{
	struct switch_event *event = bpf_ringbuf_reserve(&switch_events, sizeof(*event), 0);

	if (!event) {
		counts->events_lost++;
		return;
	}
	event->at_ns = at_ns;
	event->choice = conn->choice;
	event->key = *key;
	event->holder = conn->holder;
	event->kind = kind;
	event->round_trip_ns = round_trip_ns;
	bpf_ringbuf_submit(event, 0);
}

/* Takes the next choice of this CPU, or answers 0. No other program of this CPU runs meanwhile. */
ALWAYS_INLINE __u64 take_choice(void)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct choice_ring *ring = bpf_map_lookup_elem(&switch_choices, &cpu);
	__u64 choice = 0;
	int i;

	if (!ring)
		return 0;
	for (i = 0; i < MOST_TRIES; i++) {
		__u64 head = ring->head;

		if (head == *(volatile __u64 *)&ring->tail)
			return 0;
		/* In this order: so user space knows whether a choice that it puts here can still be taken. */
		*(volatile __u64 *)&ring->head = head + 1;
		choice = __sync_lock_test_and_set(&ring->slots[head & (RING_SLOTS - 1)], 0);
		if (choice)
			return choice;
	}
	return 0;
}
