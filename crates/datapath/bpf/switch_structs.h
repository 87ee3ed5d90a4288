/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What the switch's packet program and its loader share, as bytes (src/switch/layout.rs). A change here that alters size or
 * meaning needs a new layout version (LAYOUT_VERSION in src/pins.rs).
 */
#pragma once

#include "structs.h"

#define MOST_BACKENDS 4096
#define MOST_SERVICES 256
#define TABLE_SLOTS 65537
#define RING_SLOTS 128 /* a power of two; more than the choices in it, so that none is put where one is just being taken */
#define SAMPLE_BYTES 2048

/* A client's connection, or what takes its place without connections. No padding. */
struct conn_key {
	struct flow_key flow;
	__u32 protocol;
};

/* What is served at an address: port and protocol are never 0. */
struct service_key {
	__u32 address[4];
	__be16 port;
	__u16 protocol;
};

/* Who has a connection: the index of the back-end, and which of those that had this index (bits from 16 on). */
#define HOLDER_INDEX(holder) ((holder) & 0xffff)

#define BACKEND_USABLE 0x1 /* packets may be sent to it */
#define BACKEND_PLAIN 0x2  /* there is no tunnel to it; without this it may have one */

#define VLAN_SET 0x10000 /* frames for it have the tag of this number, or none if that is 0; else they keep what they have */
#define VLAN_ID_MASK 0xfff

struct switch_backend {
	__u64 destination; /* MAC addresses stand in the first six bytes */
	__u64 source;
	__u32 ifindex;
	__u32 holder; /* as connections name it */
	__u32 flags;  /* BACKEND_* */
	__u32 vlan;   /* a number and VLAN_SET */
	__u64 key; /* what user space knows it by in every process; 0: nobody has had this index */
};

#define CONN_FIN 0x1    /* the client has ended its side */
#define CONN_RST 0x2    /* the client has reset it, or its back-end is gone */
#define CONN_HASHED 0x4 /* placed by the hash */

/* Where the packets of a connection go. Times are coarse, but for `began_ns`. */
struct switch_conn {
	__u64 last_seen_ns;
	__u64 began_ns;
	__u64 packets;
	__u64 bytes;
	__u64 choice; /* 0: placed by the hash */
	__u32 holder;
	__u32 flags;   /* CONN_* */
	__u32 seq_end; /* the number after the highest one that the client has sent; while it opens, that after the SYN's */
	__u32 last_ack;
	__u32 round_trip_us; /* of the handshake; 0: unknown */
	__u32 padding;
};

/* What is kept of a SYN that the hash has placed: a repeated one has the same number, and goes the same way. */
struct placed_syn {
	__u32 holder;
	__u32 seq;
};

/* Which packet a fragment is of. No padding. */
struct packet_key {
	__u32 client[4];
	__u32 vip[4];
	__u32 id;
	__u32 protocol;
};

/*
 * Choices that were made for connections to come. The packet program of a CPU takes from `head` on, user space puts at
 * `tail`. A slot holds 0, or the index of a back-end plus 1 in the upper 16 bits and the number of the choice below.
 */
struct choice_ring {
	__u64 head;
	__u64 unused_by_program[7];
	__u64 tail;
	__u64 unused_by_user[7];
	__u64 slots[RING_SLOTS];
};

#define CHOICE_INDEX(choice) ((__u32)((choice) >> 48) - 1)

enum event_kind {
	EVENT_BEGAN = 1,       /* its first packet took a choice */
	EVENT_ESTABLISHED = 2, /* the client has answered the handshake, or has sent a second packet otherwise */
	EVENT_ENDED = 3,       /* the client has ended it */
	EVENT_LOST = 4,        /* its back-end was gone when the client sent something */
};

struct switch_event {
	__u64 at_ns;
	__u64 choice;
	struct conn_key key;
	__u32 holder;
	__u32 kind;
	__u64 round_trip_ns; /* of EVENT_ESTABLISHED: since the first packet; 0: unknown */
};

/* The first bytes of what a client has sent in one packet. */
struct sample {
	__u64 at_ns;
	struct conn_key key;
	__u32 holder;
	__u32 seq;
	__u32 payload_bytes; /* of the packet */
	__u32 bytes;	     /* of them here */
	__u32 round_trip_us; /* of the connection's handshake; 0: unknown */
	__u32 padding;
	__u8 payload[SAMPLE_BYTES];
};

#define MOST_INTERFACES 32

/* One at which packets arrive. */
struct switch_interface {
	__u64 address; /* MAC, in the first six bytes */
	__u32 ifindex; /* 0: none */
	__u32 is_virtual;
};

struct switch_interfaces {
	struct switch_interface all[MOST_INTERFACES];
};

struct switch_settings {
	__u32 sample_bytes; /* of each packet; 0: none */
	__u32 padding;
};

/* What a CPU has last read of the coarse clock, and at which tick. */
struct switch_clock {
	__u64 tick;
	__u64 coarse_ns;
};

/* Of each CPU. The order is that of the Rust structs in src/switch/counters.rs. */
struct switch_counters {
	__u64 forwarded_packets;
	__u64 forwarded_bytes;
	__u64 chosen;
	__u64 hashed;
	__u64 stray;
	__u64 no_backend;
	__u64 errors;
	__u64 fragments;
	__u64 fragments_lost;
	__u64 options;
	__u64 malformed;
	__u64 events_lost;
	__u64 samples;
	__u64 samples_lost;
	__u64 too_big;
};

struct backend_counters {
	__u64 packets;
	__u64 bytes;
	__u64 connections;
	__u64 established;
	__u64 retransmitted;
	__u64 resets;
};
