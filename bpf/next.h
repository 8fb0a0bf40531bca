/* SPDX-License-Identifier: GPL-2.0-only */
/* next.h - the program that runs behind this one, if there is any: an event has room for one program only. */
#ifndef BPF_NEXT_H
#define BPF_NEXT_H

#include "walk_state.h"

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} next SEC(".maps");

/* Goes on with the next program. Returns only if there is none. */
static __always_inline void run_next(void *ctx)
{
	bpf_tail_call(ctx, &next, 0);
}

#endif /* BPF_NEXT_H */
