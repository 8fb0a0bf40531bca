// SPDX-License-Identifier: GPL-2.0-only
/*
 * lend_native.bpf.c - reads the frames of ordinary users' own processes that are on the native stack
 * (native.h), as the user's recorder says how.
 *
 * lend.bpf.c calls it for such a process, and the two have their maps together. It is a program of its own
 * because it is large, as native.bpf.c is: where the kernel refuses it, the broker lends the rest. It
 * looks for itself whether there is such a lease, and relies on nothing that was looked at before.
 */
#define LANGUAGE_LENT
#define LANGUAGE_NATIVE
#include "lease.h"
#include "language_walk.h"

char LICENSE[] SEC("license") = "GPL";

/* Reads the frames of the task. It is no function of its own to the kernel, which lets eight call each other. */
static __always_inline void read_lent(void *ctx, struct walk_lease *lease, u32 number)
{
	struct language_run run = {
		.ctx = ctx,
		.lease = lease,
		.number = number,
	};

	read_run(&run, find_told(number));
}

/* Has the sample itself taken in any case. */
SEC("perf_event")
int walk_lent_native(struct bpf_perf_event_data *ctx)
{
	const u32 number = number_of(ctx);
	struct walk_lease *lease = find_lease(number);
	const u64 begin = bpf_ktime_get_ns();

	if (!lease || !is_of(lease->uid) || is_paused(begin))
		return 1;
	read_lent(ctx, lease, number);
	pause_from(begin);
	return 1;
}
