/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Sequence numbers of a client, and what they tell. */
#pragma once

#include "packet.h"

/* No window is larger (RFC 7323, section 2.3). Holds for the microseconds until a new flow's windows are known. */
#define WINDOW_MAX (1U << 30)

ALWAYS_INLINE __u64 read_word(const __u64 *word)
{
	return *(const volatile __u64 *)word;
}

/*
 * Whether `number` is at most a window away from the known one: behind it, when a packet is late or sent again, or ahead.
 * A stranger who guesses addresses and ports must hit this range, too.
 */
ALWAYS_INLINE bool within(__u64 known, __u32 number, __u32 window)
{
	if (!window)
		window = WINDOW_MAX;
	return !known || number - (__u32)known + window <= 2 * window;
}

/*
 * Raises `*known` to `number`, which is within a window of it, in the order of sequence numbers (RFC 9293, section 3.4), and
 * answers by how much. Atomic, because a lost update of `last_ack` would have the front-end believe that the client has seen nothing. Few
 * attempts are enough: packets of one flow come to one CPU at a time, but for rare moves.
 */
ALWAYS_INLINE __u32 raise(__u64 *known, __u32 number)
{
	__u64 found = read_word(known);
	__u64 before;
	int i;

	for (i = 0; i < 8; i++) {
		__s32 ahead = number - (__u32)found;

		if (found && (ahead < 0 || (ahead == 0 && found & SEEN)))
			return 0;
		before = __sync_val_compare_and_swap(known, found, SEEN | number);
		if (before == found)
			return found ? ahead : 0;
		found = before;
	}
	return 0;
}
