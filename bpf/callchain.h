/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * callchain.h - the callchain by frame pointers, as the kernel makes it of a stack of user space.
 *
 * The kernel makes what a sample has before it runs the program. Of most programs frame pointers are anything, so
 * that following them ends with a page fault in the kernel, which takes it as long as the walk; of others it takes
 * longer than that. So samples are asked for without, and the program follows frame pointers where the walk was
 * not enough. It does so itself, as bpf_get_task_stack() writes to where the kernel has the sample's callchain.
 */
#ifndef BPF_CALLCHAIN_H
#define BPF_CALLCHAIN_H

#include "language.h"
#include "write_chain.h"

/**
 * struct frame_records - the state of following frame records
 * @w: what is written. @w->frame.fp is the address of the next record.
 * @narrow: the code is 32-bit code.
 */
struct frame_records {
	struct walk *w;
	bool narrow;
};

/* Makes one round of bpf_loop(). */
static long pass_record(u32 i, struct frame_records *r)
{
	struct walk *w = r->w;
	u64 wide[2] = {};
	u32 narrow[2] = {};

	(void)i;
	if (r->narrow) {
		if (bpf_probe_read_user(narrow, sizeof(narrow), (void *)w->frame.fp))
			return 1;
		wide[0] = narrow[0];
		wide[1] = narrow[1];
	} else if (bpf_probe_read_user(wide, sizeof(wide), (void *)w->frame.fp)) {
		return 1;
	}
	w->frame.fp = wide[0];
	w->entry[MASKED(w->first + w->nr, WALK_ENTRIES)] = wide[1];
	w->nr++;
	return 0;
}

/* Writes the callchain, of up to @max entries, in front of the sample. @w has no walk any more. */
static noinline void write_callchain(struct walk *w, void *ctx, u32 max)
{
	struct task_struct *task = current;
	struct frame_records r = { .w = w };

	if (task->flags & PF_KTHREAD || !task->mm)
		return;
	r.narrow = !walk_arch_start(&w->frame, (void *)bpf_task_pt_regs((void *)task));
	w->entry[0] = PERF_CONTEXT_USER;
	w->entry[1] = w->frame.pc;
	w->first = 2;
	w->nr = 0;
	bpf_loop((max < WALK_CALLCHAIN ? max : WALK_CALLCHAIN) - 1, pass_record, &r, 0);
	w->end = LANGUAGE_CALLCHAIN;
	w->chain.guesses = 0;
	end_chain(w, ctx, 0);
	output_chain(w, ctx, BPF_F_CURRENT_CPU);
}

#endif /* BPF_CALLCHAIN_H */
