/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * context_own.h - reads trace contexts (context_walk.h) for the recorder that loaded the program, which tells
 * it of processes that publish them. What is lent has those that were told under a lease (lease.h).
 */
#ifndef BPF_CONTEXT_OWN_H
#define BPF_CONTEXT_OWN_H

#include "context_walk.h"

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, CONTEXT_PROCESSES);
	__type(key, u32);
	__type(value, struct context_process);
} context_processes SEC(".maps");

/* Writes a record with the context of the thread, if there is one. */
static noinline void read_context(void *ctx, const struct walk_config *c)
{
	u32 pid = visible_pid(c);

	write_context(ctx, bpf_map_lookup_elem(&context_processes, &pid), BPF_F_CURRENT_CPU);
}

#endif /* BPF_CONTEXT_OWN_H */
