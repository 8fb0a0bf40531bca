/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * options.h - the options of `shstk record`, and which go together.
 */
#ifndef TOOLS_RECORD_OPTIONS_OPTIONS_H
#define TOOLS_RECORD_OPTIONS_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <sys/types.h>

#include "tools/output.h"
#include "tools/perf/rings.h"
#include "tools/read_limit.h"
#include "tools/record/options/via.h"
#include "tools/record/targets/targets.h"

#define RECORD_BUFFER 256 /* KiB of a ring where nothing else is said */

/**
 * struct record_opts - what was asked for
 * @output: what to write.
 * @freq: samples per second and thread.
 * @depth: most frames of a stack.
 * @buffer: KiB of a ring, 0: what the back end takes.
 * @duration: seconds until recording stops, 0: when the command ends.
 * @every: seconds after which a profile is written and the next one begun, 0: there is one.
 * @keep: profiles of @every that are kept, 0: all.
 * @call_graph: they were asked for, as of other profilers, where one has to.
 * @live: show the hottest functions meanwhile, and write no profile,
 * @delay: every so many seconds.
 * @wall: sample wall-clock time.
 * @quiet: say nothing but what went wrong.
 * @command: to be started; NULL: what runs already.
 * @via: who samples.
 * @walk: with VIA_COPIES: stacks are walked by a BPF program, and copied where that does not come
 *	to the end.
 * @why: why nothing better than the agent was chosen, or NULL.
 * @targets: what runs already and is to be recorded.
 * @cgroup: path of a cgroup to record, or NULL.
 * @event: the first one that is other than cpu-clock, or NULL.
 * @events: all that were given,
 * @nr_events: so many.
 * @count: of these from one sample to the next, 0: nothing was said.
 * @read_limit: what reading files for their names may take.
 * @perf_data: file to write the kernel's records to as well, or NULL.
 * @all: record the whole system.
 * @off_cpu: where threads wait, instead of where they run.
 * @preempted: of that, where they could have run.
 * @wakers: with who woke them.
 * @kernel: with the kernel's functions.
 * @kernel_alone: the same, where there is no other stack. via_choose() sets it.
 * @mixed: callchains are of shadow stacks, and stacks are copied once there is a process without.
 *	via_choose() sets it.
 * @check: take each stack by hardware and by software.
 * @heap: allocations instead of time,
 * @heap_mmap: mmap() too,
 * @heap_sample: one in so many bytes, 0: all of them.
 */
struct record_opts {
	struct output output;
	unsigned long freq;
	unsigned long depth;
	unsigned long buffer;
	double duration;
	double every;
	unsigned long keep;
	bool call_graph;
	bool live;
	double delay;
	bool wall;
	bool quiet;
	char *const *command;
	enum via via;
	bool walk;
	const char *why;
	struct targets targets;
	const char *cgroup;
	const struct perf_event *event;
	struct perf_event events[1 + PERF_MORE];
	unsigned int nr_events;
	unsigned long count;
	struct read_limit read_limit;
	const char *perf_data;
	bool all;
	bool off_cpu;
	bool preempted;
	bool wakers;
	bool kernel;
	bool kernel_alone;
	bool mixed;
	bool check;
	bool heap;
	bool heap_mmap;
	unsigned long heap_sample;
};

/* What holds if nothing is said. */
void record_options_init(struct record_opts *o);

/* Do they go together? Returns 0; or an exit status, and it was said why not. */
int record_options_check(struct record_opts *o);

/* Does a sample stand for time? No: for so many events. */
bool record_counts_time(const struct record_opts *o);

/* An option given that only the kernel can do; NULL: none. */
const char *record_needs_kernel(const struct record_opts *o);

#endif
