/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Which back-end a packet goes to. The first packet of a connection takes the next choice of its CPU, and later ones go where
 * the first one went. Without a choice, and for connections that nobody knows, a consistent hash decides.
 */
#pragma once

#include "switch_choose.h"

/* How far a client's sequence number may be from the last one, for its FIN or RST to be believed. */
#define BELIEVED_BYTES (1 << 20)
/*
 * How far the number of the packet that establishes a connection may be from its SYN's: what a client sends before an answer (RFC
 * 6928), as the first of these packets may be lost.
 */
#define FIRST_BYTES 65535

ALWAYS_INLINE bool is_tcp(const struct sight *sight)
{
	return sight->key.protocol == PROTOCOL_TCP;
}

ALWAYS_INLINE bool opens(const struct sight *sight)
{
	return (sight->flags & (TCP_SYN | TCP_ACK | TCP_RST | TCP_FIN)) == TCP_SYN;
}

/* Whether it continues a connection that is established, as far as it can tell. */
ALWAYS_INLINE bool continues(const struct sight *sight)
{
	return (sight->flags & (TCP_SYN | TCP_ACK | TCP_RST)) == TCP_ACK;
}

ALWAYS_INLINE __u32 sight_end(const struct sight *sight)
{
	return sight->seq + sight->payload_bytes + (sight->flags & TCP_FIN ? 1 : 0);
}

ALWAYS_INLINE bool is_believed(const struct switch_conn *conn, __u32 number)
{
	return number - conn->seq_end + BELIEVED_BYTES <= 2 * BELIEVED_BYTES;
}

/*
 * The kernel's coarse clock, which moves at ticks: it is read once in each. The number of the tick is a load, the clock a call, which
 * for each packet was a seventh of this program's time. It may be late by a tick.
 */
ALWAYS_INLINE __u64 coarse_ns(void)
{
	__u32 zero = 0;
	struct switch_clock *clock = bpf_map_lookup_elem(&switch_clocks, &zero);
	__u64 tick = bpf_jiffies64();

	if (!clock)
		return bpf_ktime_get_coarse_ns();
	if (clock->tick != tick) {
		/* In this order: who interrupts us must not take an old time for that of the tick. */
		clock->coarse_ns = bpf_ktime_get_coarse_ns();
		asm volatile("" ::: "memory");
		clock->tick = tick;
	}
	return clock->coarse_ns;
}

ALWAYS_INLINE void begin(struct switch_conn *conn, const struct sight *sight, __u32 holder, __u64 now_ns)
{
	conn->last_seen_ns = now_ns;
	conn->began_ns = now_ns;
	conn->packets = 1;
	conn->bytes = sight->frame_bytes;
	conn->holder = holder;
	conn->seq_end = sight_end(sight) + (sight->flags & TCP_SYN ? 1 : 0);
	conn->last_ack = sight->ack;
}

/* Who got a SYN that the hash has placed, if packets are still sent there. */
ALWAYS_INLINE __u32 placed_holder(const struct placed_syn *syn)
{
	return usable_backend(syn->holder) ? syn->holder : NOBODY;
}

/*
 * The connection is entered under what the hash says, or has said of its SYN, so that a change of the table does not move it. It is
 * told of with its second packet: a single one may be forged.
 */
ALWAYS_INLINE __u32 enter_hashed(const struct sight *sight, struct switch_counters *counts)
{
	struct switch_conn conn = { .flags = CONN_HASHED };
	__u32 holder = NOBODY;

	if (is_tcp(sight)) {
		struct placed_syn *syn = bpf_map_lookup_elem(&switch_syns, &sight->key);

		if (syn && sight->seq - syn->seq - 1 <= FIRST_BYTES)
			holder = placed_holder(syn);
	}
	if (holder == NOBODY)
		holder = hashed_holder(&sight->key);

	counts->stray++;
	if (holder == NOBODY)
		return NOBODY;
	begin(&conn, sight, holder, bpf_ktime_get_ns());
	if (sight->flags & TCP_FIN)
		conn.flags |= CONN_FIN;
	bpf_map_update_elem(&switch_hashed, &sight->key, &conn, BPF_ANY);
	return holder;
}

/* A SYN for which there is no choice. It may be forged, so it enters no table of connections. */
ALWAYS_INLINE __u32 place_syn(const struct sight *sight)
{
	struct placed_syn syn = { .holder = hashed_holder(&sight->key), .seq = sight->seq };

	if (syn.holder != NOBODY)
		bpf_map_update_elem(&switch_syns, &sight->key, &syn, BPF_ANY);
	return syn.holder;
}

/* Who got this very SYN before. */
ALWAYS_INLINE __u32 repeated_syn_holder(const struct sight *sight)
{
	struct placed_syn *syn = bpf_map_lookup_elem(&switch_syns, &sight->key);

	return syn && syn->seq == sight->seq ? placed_holder(syn) : NOBODY;
}

/* The first packet of a connection. */
ALWAYS_INLINE __u32 open(const struct sight *sight, struct switch_counters *counts)
{
	struct switch_conn conn = {};
	struct switch_backend *backend;
	__u64 now_ns;

	if (is_tcp(sight)) {
		__u32 holder = repeated_syn_holder(sight);

		if (holder != NOBODY)
			return holder;
	}
	conn.choice = take_choice();
	if (!conn.choice) {
		counts->hashed++;
		return is_tcp(sight) ? place_syn(sight) : enter_hashed(sight, counts);
	}
	now_ns = bpf_ktime_get_ns();
	backend = backend_at(CHOICE_INDEX(conn.choice));
	if (!backend || !(backend->flags & BACKEND_USABLE)) {
		tell(&sight->key, &conn, EVENT_LOST, now_ns, 0, counts);
		return hashed_holder(&sight->key);
	}
	counts->chosen++;
	begin(&conn, sight, backend->holder, now_ns);
	if (is_tcp(sight))
		conn.seq_end = sight->seq + 1;
	bpf_map_update_elem(&switch_opening, &sight->key, &conn, BPF_ANY);
	tell(&sight->key, &conn, EVENT_BEGAN, now_ns, 0, counts);
	return conn.holder;
}

ALWAYS_INLINE struct backend_counters *share_of(__u32 holder)
{
	__u32 index = HOLDER_INDEX(holder);

	return bpf_map_lookup_elem(&switch_shares, &index);
}

ALWAYS_INLINE void count_backend(__u32 holder, const struct sight *sight)
{
	struct backend_counters *share = share_of(holder);

	if (!share)
		return;
	share->packets++;
	share->bytes += sight->frame_bytes;
	if (is_tcp(sight) && opens(sight))
		share->connections++;
}

/* Notes what a packet of an established connection says of its client. */
ALWAYS_INLINE void note(struct switch_conn *conn, struct sight *sight, struct switch_counters *counts)
{
	__u64 packets = conn->packets + 1;
	__u32 flags = conn->flags;
	__u32 end = sight_end(sight);
	__u32 ending;

	conn->last_seen_ns = coarse_ns();
	conn->packets = packets;
	conn->bytes += sight->frame_bytes;
	if (packets == 2 && flags & CONN_HASHED && !(flags & (CONN_FIN | CONN_RST)))
		tell(&sight->key, conn, EVENT_ESTABLISHED, bpf_ktime_get_ns(), 0, counts);
	if (!is_tcp(sight) || sight->flags & TCP_SYN)
		return;
	if (!is_believed(conn, end))
		return;
	sight->is_known = true;
	if ((__s32)(end - conn->seq_end) > 0) {
		conn->seq_end = end;
	} else if (sight->payload_bytes) {
		struct backend_counters *share = share_of(conn->holder);

		if (share)
			share->retransmitted++;
	}
	if (sight->flags & TCP_ACK && !(sight->flags & TCP_RST))
		conn->last_ack = sight->ack;
	ending = (sight->flags & TCP_FIN ? CONN_FIN : 0) | (sight->flags & TCP_RST ? CONN_RST : 0);
	if (ending) {
		__u32 before = conn->flags;

		conn->flags = before | ending;
		if (!(before & (CONN_FIN | CONN_RST)))
			tell(&sight->key, conn, EVENT_ENDED, bpf_ktime_get_ns(), 0, counts);
	}
}

/* Its back-end is gone: the client is told so once, by this machine's kernel. */
ALWAYS_INLINE void lose(struct switch_conn *conn, const struct sight *sight, struct switch_counters *counts)
{
	__u32 before = conn->flags;
	struct backend_counters *share;

	conn->flags = before | CONN_RST;
	if (before & CONN_RST)
		return;
	share = share_of(conn->holder);
	if (share)
		share->resets++;
	if (!(before & CONN_FIN))
		tell(&sight->key, conn, EVENT_LOST, bpf_ktime_get_ns(), 0, counts);
}

/*
 * The second step of a handshake, or a second datagram: from now on forged first packets cannot push it out. Where the next packet
 * does the same on another CPU, one of them tells and counts. It is entered before it leaves the other table, so that who misses it
 * there finds it here.
 */
ALWAYS_INLINE void establish(const struct switch_conn *opening, const struct sight *sight,
			     struct switch_counters *counts)
{
	struct switch_conn conn = *opening;
	struct backend_counters *share = share_of(conn.holder);
	__u64 now_ns = bpf_ktime_get_ns();

	if (is_tcp(sight))
		conn.round_trip_us = (now_ns - conn.began_ns) / 1000;
	if (bpf_map_update_elem(&switch_conns, &sight->key, &conn, BPF_NOEXIST))
		return;
	bpf_map_delete_elem(&switch_opening, &sight->key);
	if (share)
		share->established++;
	tell(&sight->key, &conn, EVENT_ESTABLISHED, now_ns, is_tcp(sight) ? now_ns - conn.began_ns : 0, counts);
}

/* One that has taken a choice and is established. */
ALWAYS_INLINE struct switch_conn *find_chosen(const struct conn_key *key)
{
	return bpf_map_lookup_elem(&switch_conns, key);
}

ALWAYS_INLINE struct switch_conn *find(const struct conn_key *key)
{
	struct switch_conn *conn = find_chosen(key);

	return conn ? conn : bpf_map_lookup_elem(&switch_hashed, key);
}

/*
 * Whether the packet ends the handshake that a SYN began, as its number follows the SYN's. Only the back-end knows whether what it
 * acknowledges is right, too.
 */
ALWAYS_INLINE bool answers(const struct switch_conn *opening, const struct sight *sight)
{
	return continues(sight) && sight->seq - opening->seq_end <= FIRST_BYTES;
}

/* A SYN with another number is of another attempt of the client. */
ALWAYS_INLINE void note_opening(struct switch_conn *opening, const struct sight *sight)
{
	opening->last_seen_ns = coarse_ns();
	opening->packets++;
	opening->bytes += sight->frame_bytes;
	if (opens(sight) && opening->seq_end != sight->seq + 1) {
		opening->seq_end = sight->seq + 1;
		opening->began_ns = bpf_ktime_get_ns();
	}
}

/* A packet of a connection that is only opening, or, without `opening`, of one that nobody knows. */
ALWAYS_INLINE __u32 place_unknown(struct sight *sight, struct switch_conn *opening, struct switch_counters *counts)
{
	bool is_opening = is_tcp(sight) && opens(sight);
	__u32 holder;

	if (!opening || !usable_backend(opening->holder)) {
		if (opening) {
			tell(&sight->key, opening, EVENT_LOST, bpf_ktime_get_ns(), 0, counts);
			bpf_map_delete_elem(&switch_opening, &sight->key);
		}
		if (is_opening || !is_tcp(sight))
			return open(sight, counts);
		return continues(sight) ? enter_hashed(sight, counts) : hashed_holder(&sight->key);
	}
	holder = opening->holder;
	if (!is_tcp(sight) || answers(opening, sight)) {
		establish(opening, sight, counts);
		opening = bpf_map_lookup_elem(&switch_conns, &sight->key);
		if (opening)
			note(opening, sight, counts);
		return holder;
	}
	note_opening(opening, sight);
	if (sight->flags & TCP_RST && is_believed(opening, sight->seq)) {
		tell(&sight->key, opening, EVENT_ENDED, bpf_ktime_get_ns(), 0, counts);
		bpf_map_delete_elem(&switch_opening, &sight->key);
	}
	return holder;
}

/*
 * Whether the packet begins a connection anew, although there is one. While the client has not ended that, a SYN may be forged:
 * the back-end's kernel challenges it (RFC 5961, section 4), and a client that has forgotten the connection resets it then.
 */
ALWAYS_INLINE bool begins_anew(const struct switch_conn *conn, const struct sight *sight)
{
	if (is_tcp(sight))
		return conn->flags & (CONN_FIN | CONN_RST) && opens(sight);
	return !usable_backend(conn->holder);
}

/* Who gets the packet, if it is of this connection or else of another one. */
ALWAYS_INLINE struct switch_backend *place(struct sight *sight, struct switch_conn *conn,
					   struct switch_counters *counts)
{
	struct switch_backend *backend;

	if (!conn)
		conn = bpf_map_lookup_elem(&switch_hashed, &sight->key);
	if (conn && begins_anew(conn, sight)) {
		if (!is_tcp(sight))
			lose(conn, sight, counts);
		bpf_map_delete_elem(&switch_conns, &sight->key);
		bpf_map_delete_elem(&switch_hashed, &sight->key);
		conn = NULL;
	}
	if (!conn) {
		struct switch_conn *opening = bpf_map_lookup_elem(&switch_opening, &sight->key);

		/* The packet before this one may have established it on another CPU since it was looked for. */
		if (!opening)
			conn = find_chosen(&sight->key);
		if (conn && begins_anew(conn, sight)) {
			bpf_map_delete_elem(&switch_conns, &sight->key);
			conn = NULL;
		}
		if (!conn)
			return usable_backend(place_unknown(sight, opening, counts));
	}
	sight->round_trip_us = conn->round_trip_us;
	backend = usable_backend(conn->holder);
	if (backend)
		note(conn, sight, counts);
	else
		lose(conn, sight, counts);
	return backend;
}
