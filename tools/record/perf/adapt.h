/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * adapt.h - changes how a recording by perf events samples while it goes on.
 */
#ifndef TOOLS_RECORD_PERF_ADAPT_H
#define TOOLS_RECORD_PERF_ADAPT_H

#include <stdbool.h>
#include <stdint.h>

/**
 * enum change - why rings are replaced by others, in the order in which it is checked
 * @CHANGE_PERIOD: samples become rarer.
 * @CHANGE_COPIES: stacks are copied.
 * @CHANGE_SCOPE: events are those of the CPUs instead of those of the threads.
 * @CHANGE_WALK: stacks are walked in the kernel, where a BPF program runs at samples already, or where samples
 *	then need no callchain of the kernel's.
 * @CHANGE_MOMENTS: a BPF program copies the stacks of goroutines beside samples.
 * @CHANGE_READING: that program runs behind the one that reads the frames of interpreters.
 * @CHANGE_SIZE: copies of stacks become larger.
 * @CHANGES: number of changes.
 *
 * Each change affects one part of the recording and leaves all others alone:
 *
 *	change   part             from, to                    when
 *	PERIOD   opts.count       n, the next of coarser[]    more samples than can be taken
 *	COPIES   stacks.source    STACK_SHADOW,               a process has no shadow stack for
 *	                          STACK_SHADOW_OR_COPIES      longer than its loader may take
 *	                          or STACK_COPIES
 *	SCOPE    scope.kind       SCOPE_GIVEN, SCOPE_OURS     threads end before they have samples
 *	WALK     walker, and      none, @later                it is loaded (the rings stay, if no BPF
 *	         opts.program     that of gomoments.h, none   program runs yet, where opts.no_user does
 *	         opts.no_user     false, true                 not become true or others are refused)
 *	MOMENTS  opts.program     none, that of gomoments.h   stacks of Go are copied
 *	READING  opts.program     that of gomoments.h, none   an interpreter is met, too
 *	SIZE     opts.copy        n, the next of sizes[]      one stack of 200 is larger than copies
 *
 * If the kernel refuses a change, nothing changes and it is not tried again (@refused of struct
 * adapt). PERIOD and SIZE may be made more than once. The others are made once, because the part is
 * then no longer in the state from which the change starts.
 */
enum change {
	CHANGE_PERIOD,
	CHANGE_COPIES,
	CHANGE_SCOPE,
	CHANGE_WALK,
	CHANGE_MOMENTS,
	CHANGE_READING,
	CHANGE_SIZE,
	CHANGES,
};

/**
 * struct adapt - what is known for changes
 * @refused: a bit for each change, 1 << enum change: it was refused, or must not be made.
 * @behind: the program that reads frames on the native stack runs behind another one.
 * @came: samples in this window, including lost ones; counted as records are taken.
 * @came_since: CLOCK_MONOTONIC in ns, when the window began.
 */
struct adapt {
	unsigned int refused;
	bool behind;
	uint64_t came;
	uint64_t came_since;
};

struct perf_recording;

/*
 * Has stacks be walked in the kernel from now on, if that is wanted and what it needs is loaded. The
 * rings stay: this is for those that were opened just now.
 */
void begin_walking(struct perf_recording *d);

/*
 * Has the frames of interpreters be read at samples from now on, once there is an interpreter. The
 * rings stay. An event has room for one BPF program: the first language decides.
 */
void read_languages(struct perf_recording *d);

/*
 * Makes the changes that are due. Called after all records in the rings were taken. Returns 0 or
 * what ended the reading of old rings.
 */
int adapt(struct perf_recording *d);

#endif
