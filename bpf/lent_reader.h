/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lent_reader.h - what the programs do that read frames of ordinary users' own processes, as the user's recorder
 * says how. lend.bpf.c calls them, and has its maps together with them (load_reader() in tools/bpf/walker.c).
 *
 * They look for themselves whether there is such a lease, and rely on nothing that was looked at before.
 */
#ifndef BPF_LENT_READER_H
#define BPF_LENT_READER_H

#define LANGUAGE_LENT
#include "lease.h"
#include "language_walk.h"

/*
 * Reads the frames of the task. It is no function of its own to the kernel, which lets eight call each other.
 * Returns 1: the sample itself is taken in any case.
 */
static __always_inline int read_lent(void *ctx)
{
	const u32 number = number_of(ctx);
	struct language_run run = {
		.ctx = ctx,
		.lease = find_lease(number),
		.number = number,
	};
	const u64 begin = bpf_ktime_get_ns();

	if (!run.lease || !is_of(run.lease->uid) || is_paused(begin))
		return 1;
	read_run(&run, find_told(number));
	pause_from(begin);
	return 1;
}

#endif /* BPF_LENT_READER_H */
