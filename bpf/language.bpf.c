// SPDX-License-Identifier: GPL-2.0-only
/*
 * language.bpf.c - a BPF program at perf events that reads the frames of interpreters.
 *
 * It runs beside copies of stacks: each sample is taken, and before it the frames of its thread are
 * written to the event in the map "output", if its process has an interpreter that is known, and so
 * is the thread's trace context.
 */
#include "context_own.h"
#include "language_walk.h"
#include "next.h"
#include "program.h"

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
	run_next(ctx);
	return 1;
}
