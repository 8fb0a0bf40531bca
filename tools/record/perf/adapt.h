/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * adapt.h - how a recording by perf events changes while it goes on.
 */
#ifndef TOOLS_RECORD_PERF_ADAPT_H
#define TOOLS_RECORD_PERF_ADAPT_H

#include <stdbool.h>
#include <stdint.h>

/**
 * enum change - what rings are replaced by others for, in the order in which it is looked for
 * @CHANGE_PERIOD: samples are rarer.
 * @CHANGE_COPIES: stacks are copied.
 * @CHANGE_SCOPE: events are the CPUs', in the place of the threads'.
 * @CHANGE_MOMENTS: a BPF program copies goroutines' stacks beside samples.
 * @CHANGE_SIZE: copies are larger.
 * @CHANGES: number of these.
 *
 * Each changes one part of the recording and leaves all others alone:
 *
 *	change   part             from, to                    when
 *	PERIOD   opts.count       n, the next of coarser[]    more samples than can be taken
 *	COPIES   stacks.source    STACK_SHADOW,               a process has no shadow stack for
 *	                          STACK_SHADOW_OR_COPIES      longer than its loader may take
 *	SCOPE    scope.kind       SCOPE_GIVEN, SCOPE_OURS     threads end before they have samples
 *	MOMENTS  opts.program     none, that of gomoments.h   stacks of Go are copied
 *	SIZE     opts.copy        n, the next of sizes[]      one stack of 200 is larger than copies
 *
 * The kernel may refuse it. Then nothing has changed, and this change is not tried again (@refused
 * of struct adapt). PERIOD and SIZE may be made more than once, the others are made once: their
 * part is not in the state any more from which they begin.
 */
enum change {
	CHANGE_PERIOD,
	CHANGE_COPIES,
	CHANGE_SCOPE,
	CHANGE_MOMENTS,
	CHANGE_SIZE,
	CHANGES,
};

/**
 * struct adapt - what is known for changes
 * @refused: for each change a bit, 1 << enum change: it was refused, or cannot be made.
 * @came: samples in this window, lost ones too. Counted by who takes records.
 * @came_since: when the window began, ns.
 */
struct adapt {
	unsigned int refused;
	uint64_t came;
	uint64_t came_since;
};

struct perf_drain;

/* Makes what changes are due, when all records that there are were taken. 0, or what ended it. */
int adapt(struct perf_drain *d);

#endif
