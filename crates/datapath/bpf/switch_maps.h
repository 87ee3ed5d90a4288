/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The maps of the switch. */
#pragma once

#include "switch_parse.h"
#include "tunnel.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MOST_SERVICES);
	__type(key, struct service_key);
	__type(value, __u32);
} switch_services SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MOST_BACKENDS);
	__type(key, __u32);
	__type(value, struct switch_backend);
} switch_backends SEC(".maps");

/* How to get to a back-end, by its index, where that is by a tunnel. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MOST_BACKENDS);
	__type(key, __u32);
	__type(value, struct switch_tunnel);
} switch_tunnels SEC(".maps");

/* The consistent hash: the index of a back-end plus 1, or 0. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TABLE_SLOTS);
	__type(key, __u32);
	__type(value, __u32);
} switch_table SEC(".maps");

/* One for each CPU, which user space maps into its memory. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct choice_ring);
} switch_choices SEC(".maps");

#define CONNECTIONS(entries)                                                                                           \
	struct {                                                                                                       \
		__uint(type, BPF_MAP_TYPE_LRU_HASH);                                                                   \
		__uint(max_entries, entries);                                                                          \
		__type(key, struct conn_key);                                                                          \
		__type(value, struct switch_conn);                                                                     \
	}

/*
 * Three tables, so that forged packets can only push out what they could be themselves. Established connections whose first
 * packet took a choice; those of which only first packets have come; and those that the hash has placed, where losing an entry
 * hardly ever matters.
 */
CONNECTIONS(65536) switch_conns SEC(".maps");
CONNECTIONS(65536) switch_opening SEC(".maps");
CONNECTIONS(65536) switch_hashed SEC(".maps");

/* SYNs that the hash has placed. Forged ones push out each other: then a repeated one may go elsewhere. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct conn_key);
	__type(value, struct placed_syn);
} switch_syns SEC(".maps");

/* Who has got the first fragment of a packet: later ones have no ports. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct packet_key);
	__type(value, __u32);
} switch_fragments SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} switch_events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 23);
} switch_samples SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct switch_settings);
} switch_settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct switch_interfaces);
} switch_interfaces SEC(".maps");

/* See `coarse_ns`. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct switch_clock);
} switch_clocks SEC(".maps");

COUNTERS(switch_counters) switch_counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MOST_BACKENDS);
	__type(key, __u32);
	__type(value, struct backend_counters);
} switch_shares SEC(".maps");
