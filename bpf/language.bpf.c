// SPDX-License-Identifier: GPL-2.0-only
/*
 * language.bpf.c - a BPF program at perf events that reads the frames of interpreters.
 *
 * It runs beside copies of stacks: each sample is taken, and before it the frames of its thread are
 * written to the event in the map "output", if its process has an interpreter that is known, and so
 * is the thread's trace context.
 */
#include "context_walk.h"
#include "language_walk.h"
#include "program.h"

/* The program that runs behind this one, if any: an event has room for one program only. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} language_next SEC(".maps");

char LICENSE[] SEC("license") = "GPL";

SEC("perf_event")
int language_sample(struct bpf_perf_event_data *ctx)
{
	u32 zero = 0;
	struct walk_config *c = bpf_map_lookup_elem(&config, &zero);

	if (c && !(current->flags & PF_KTHREAD)) {
		read_context(ctx, c);
		read_language(ctx, c);
	}
	bpf_tail_call(ctx, &language_next, 0);
	return 1;
}
