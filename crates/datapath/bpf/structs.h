/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What the packet programs and the loader share. The loader reads and writes these as bytes (src/layout.rs). A change
 * here that alters size or meaning needs a new layout version (LAYOUT_VERSION in src/pins.rs).
 */
#pragma once

#include <linux/types.h>

#define MAX_VIPS 256

/* A client's connection to a virtual address. IPv4 addresses are IPv4-mapped IPv6; all in network order. No padding. */
struct flow_key {
	__u32 client[4];
	__u32 vip[4];
	__be16 client_port;
	__be16 vip_port;
};

#define FLOW_FIN 0x1 /* the client has sent a FIN, by its sequence number */
#define FLOW_RST 0x2 /* the client has sent a RST, likewise */
#define FLOW_OVER 0x4 /* the back-end says that the connection is over */

/*
 * A sequence number that may be unknown: 0, or SEEN or GIVEN with the number in the low half. One word, so that it changes
 * whole.
 */
#define SEEN (1ULL << 32)  /* the client has sent it */
#define GIVEN (1ULL << 33) /* the front-end's kernel expected it when the connection was handed off */

/* MAC addresses stand in the first six bytes, so that each is changed by one store. */
struct next_hop {
	__u64 destination;
	__u64 source;
	__u32 ifindex; /* 0: this machine */
	__u32 agent;
};

/* Where packets of a flow go, and what the client has sent on it. */
struct flow_entry {
	__u64 last_seen_ns;
	__u64 packets;
	__u64 bytes;
	__u64 last_ack;     /* highest acknowledgment number, see SEEN */
	__u64 last_seq_end; /* highest sequence number, plus what it covers, see SEEN */
	struct next_hop next_hop;
	__u32 seen; /* FLOW_* */
	/* The windows are in bytes; 0: unknown. */
	__u32 our_window;    /* the largest that our side can announce */
	__u32 client_window; /* the largest that the client has announced */
	__u32 client_scale;  /* by how many bits the client's announcements are shifted */
	__u64 began_ns;      /* when the flow was entered */
	__u64 acked_bytes;   /* what the client has acknowledged since then */
};

/* Which packet a fragment is of. No padding. */
struct fragment_key {
	__u32 client[4];
	__u32 vip[4];
	__u32 id;
};

/* What the loader gives to `plimsoll_turn`. */
struct turn {
	struct next_hop next_hop;
	struct flow_key flow;
	__u32 marks; /* of a clone_entry: CLONE_KEPT, CLONE_CLOSING */
};

/* What the loader gives to `plimsoll_windows`. */
struct windows {
	__u32 from_us;     /* what the client has acknowledged */
	__u32 from_client; /* the number after the last byte that the client has sent */
	__u32 our_window;
	__u32 client_window;
	__u32 client_scale;
	struct flow_key flow;
};

/* What the loader gives to `plimsoll_end` and `plimsoll_forget`. */
struct ended {
	__u64 quiet_ns;
	struct flow_key flow;
	__u32 padding;
};

/* Until when a back-end may send on a flow. */
struct lease {
	__u64 until_ns; /* ~0: without end */
	__u64 last_sent_ns;
};

/* A virtual address, with a port, or with port 0: any. */
struct vip_key {
	__u32 address[4];
	__be16 port;
	__u16 padding;
};

/* What precedes a held frame in the ring. */
struct held_head {
	__u64 at_ns;
	__u32 frame_bytes;
	__u32 ifindex;
	struct flow_key flow;
	__u32 told; /* TOLD_*, instead of a frame; 0 with a frame */
};

/* What the packet router tells of a client without its packet. */
#define TOLD_ACKNOWLEDGED 1
#define TOLD_RESET 2
#define TOLD_FORGED 3

#define HELD_SMALL_BYTES 200
/* Must fit, with what the kernel puts around it, into one page when it is injected again. */
#define HELD_LARGE_BYTES 3072

struct held_small {
	struct held_head head;
	__u8 frame[HELD_SMALL_BYTES];
};

struct held_large {
	struct held_head head;
	__u8 frame[HELD_LARGE_BYTES];
};

/* Of each CPU. The order is that of the Rust structs in src/counters.rs. */
struct forwarder_counters {
	__u64 forwarded_packets;
	__u64 forwarded_bytes;
	__u64 unknown;
	__u64 syn_removed;
	__u64 errors;
	__u64 fragments;
	__u64 options;
	__u64 malformed;
};

struct guard_counters {
	__u64 passed;
	__u64 held;
	__u64 ring_full;
	__u64 too_long;
	__u64 syn_dropped;
	__u64 syn_returned;
	__u64 sent;
	__u64 fenced_unknown;
	__u64 fenced_late;
	__u64 fragments;
	__u64 options;
	__u64 malformed;
};

/* The packet router's. */
struct router_counters {
	__u64 routed_packets;
	__u64 routed_bytes;
	__u64 held;
	__u64 ring_full;
	__u64 too_long;
	__u64 late;
	__u64 resets;
	__u64 forged;
	__u64 errors;
	__u64 fragments;
	__u64 options;
	__u64 malformed;
};

#define CLONE_NUMBERED 0x1     /* the numbers are known */
#define CLONE_ACKNOWLEDGED 0x2 /* the whole answer is, and that was told */
#define CLONE_RESET 0x4        /* by the client, and that was told */
#define CLONE_KEPT 0x10        /* the clone has the connection: all packets are its own */
#define CLONE_CLOSING 0x20     /* which it has ended: a SYN begins another one */
#define CLONE_FORGED 0x8       /* more was acknowledged than can have been sent, and that was told */
#define CLONE_BEGUN_ANEW 0x40  /* a SYN has come: the client may begin another connection */

/* Where packets of a cloned connection go, and how far its client has come. */
struct clone_entry {
	__u64 last_ack; /* highest acknowledgment number, see SEEN */
	__u64 end;      /* the number after the last byte of the answer, see SEEN; 0: unknown */
	__u64 last_seen_ns;
	__u64 packets;
	struct next_hop next_hop; /* interface 0: packets are held */
	__u32 seen;               /* CLONE_* */
	__u32 edge;               /* the number up to which the client has ever let us send */
	__u32 client_window;      /* announced last, in bytes */
	__u32 client_scale;
	__u32 expected_seq; /* the number of the next byte that we expect from the client */
	__u32 our_window;
};

/* What the loader gives to `plimsoll_expect`. */
struct expected_end {
	__u32 end;
	struct flow_key flow;
};

/* What that answers. */
#define EXPECT_WAIT 0
#define EXPECT_NO_FLOW 1
#define EXPECT_THERE 2
#define EXPECT_BEYOND 3
