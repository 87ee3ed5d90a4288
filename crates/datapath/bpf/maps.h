/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* How maps are declared. Sizes of those that users configure are set by the loader before it creates them. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "structs.h"

/* One struct of counters for each CPU: no atomics, no shared cache lines. */
#define COUNTERS(kind)                                                                                                 \
	struct {                                                                                                       \
		__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);                                                               \
		__uint(max_entries, 1);                                                                                \
		__type(key, __u32);                                                                                    \
		__type(value, struct kind);                                                                            \
	}

#define ALWAYS_INLINE static __attribute__((always_inline)) inline
