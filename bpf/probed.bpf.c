// SPDX-License-Identifier: GPL-2.0-only
/*
 * probed.bpf.c - a BPF program that reads the frames of interpreters for `shstk record --heap -p`.
 *
 * When a function is called that allocates, the program at that probe (tools/probes/bpf/heap.bpf.c)
 * calls this one, if the allocation is to be recorded and some process has an interpreter that is
 * known. This one calls the program that records the call, and tells it whether there are frames.
 */
#define LANGUAGE_PROBED
#include "language_walk.h"
#include "next.h"

char LICENSE[] SEC("license") = "GPL";

/*
 * Takes a state of this CPU that no other thread has. Returns whether there was one. It may begin with any of
 * them: the CPU's number is one that the verifier does not know, so what follows is not looked at for each state.
 */
static __always_inline bool take_slot(struct language_run *run)
{
	u32 first = bpf_get_smp_processor_id();

	for (u32 i = 0; i < LANGUAGE_SLOTS; i++) {
		struct language_walk *l;

		run->slot = MASKED(first + i, LANGUAGE_SLOTS);
		l = find_walk(run);
		if (l && !__sync_lock_test_and_set(&l->taken, 1))
			return true;
	}
	return false;
}

static __always_inline void give_slot(struct language_run *run)
{
	struct language_walk *l = find_walk(run);

	if (l)
		__sync_lock_test_and_set(&l->taken, 0);
}

/* Reads the frames of the thread, and writes a record of them. Returns how that ended. */
static noinline u64 read_probed(void *ctx, const struct walk_config *c)
{
	struct language_run run = { .ctx = ctx };
	u64 ret;

	if (!take_slot(&run))
		return PROBE_FRAMES_MISSED;
	read_run(&run, c);
	ret = run.written;
	give_slot(&run);
	return ret;
}

SEC("kprobe")
int language_probe(void *ctx)
{
	u32 zero = 0;
	u64 thread = bpf_get_current_pid_tgid();
	struct walk_config *c = bpf_map_lookup_elem(&config, &zero);
	struct probe_pending *call = bpf_map_lookup_elem(&probe_calls, &thread);

	if (c && call && !(current->flags & PF_KTHREAD))
		call->frames = read_probed(ctx, c);
	run_next(ctx);
	return 0;
}
