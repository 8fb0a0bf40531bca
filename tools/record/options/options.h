/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * options.h - the options of `shstk record` and `shstk top`, and the check that they can be
 * combined.
 */
#ifndef TOOLS_RECORD_OPTIONS_OPTIONS_H
#define TOOLS_RECORD_OPTIONS_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <sys/types.h>

#include "tools/output.h"
#include "tools/perf/rings.h"
#include "tools/push/push.h"
#include "tools/read_limit.h"
#include "tools/record/options/sampler.h"
#include "tools/record/targets/targets.h"

#define RECORD_BUFFER 256 /* KiB of a ring unless an option says otherwise */

/**
 * struct record_opts - the options that were given
 * @output: files and formats to write.
 * @freq: samples per second and thread.
 * @depth: most frames of a stack.
 * @threads: how many threads work, where copies of stacks are unwound.
 * @fold: @depth was not given: of deeper stacks both ends are shown, and once what repeats.
 * @buffer: KiB of a ring, 0: the back end's default.
 * @duration: seconds until recording stops, 0: when the command ends.
 * @every: seconds after which a profile is written and the next one begins, 0: there is one
 *	profile.
 * @keep: how many of the profiles of @every are kept, 0: all.
 * @call_graph: callchains were asked for by -g or --call-graph, as other profilers need it.
 * @live: show the hottest functions while recording, and write no profile.
 * @delay: with @live: seconds from one table to the next.
 * @wall: sample wall-clock time.
 * @quiet: print nothing but what went wrong.
 * @dry_run: check the options only.
 * @config: file from which more options were taken, or NULL.
 * @metrics: file for figures of the recording (metrics.h), or NULL.
 * @command: the command to start, or NULL if what runs already is recorded.
 * @via: who takes the samples.
 * @walk: with VIA_COPIES: a BPF program walks the stacks, and a stack is copied where the walk does
 *	not reach its end.
 * @may_walk: the same, if the kernel accepts that program. sampler_choose() sets it.
 * @lent: with @walk or by itself: the broker is asked for that program, as this user may not load it.
 *	sampler_choose() sets it.
 * @why: why nothing better than the agent was chosen, or NULL. sampler_choose() sets it.
 * @targets: the running processes or threads that are recorded.
 * @cgroup: path of the cgroup that is recorded, or NULL.
 * @event: the first of @events, or NULL: samples are taken by cpu-clock.
 * @events: all events that were given.
 * @nr_events: number of @events.
 * @count: number of events from one sample to the next, 0: not given.
 * @read_limit: limits on reading files to find names.
 * @perf_data: file to which the kernel's records are written as well, or NULL.
 * @push: how profiles are sent to a server; its member @to is NULL: they are not.
 * @all: record the whole system.
 * @off_cpu: record where threads wait, instead of where they run.
 * @preempted: with @off_cpu: only waits of threads that could have run.
 * @wakers: with @off_cpu: record who woke the threads.
 * @kernel: record the kernel's functions too.
 * @kernel_alone: record the kernel's functions where there is no other stack. sampler_choose() sets
 *	it.
 * @mixed: callchains come from shadow stacks, and stacks are copied from the time on at which there
 *	is a process without a shadow stack. sampler_choose() sets it.
 * @heap: record allocations instead of time.
 * @heap_mmap: with @heap: record mmap() too.
 * @heap_python: with @heap: record Python's objects too.
 * @heap_sample: with @heap: sample one allocation in so many bytes, 0: record all.
 */
struct record_opts {
	struct output output;
	unsigned long freq;
	unsigned long depth;
	unsigned int threads;
	bool fold;
	unsigned long buffer;
	double duration;
	double every;
	unsigned long keep;
	bool call_graph;
	bool live;
	double delay;
	bool wall;
	bool quiet;
	bool dry_run;
	const char *config;
	const char *metrics;
	char *const *command;
	enum via via;
	bool walk;
	bool may_walk;
	bool lent;
	const char *why;
	struct targets targets;
	const char *cgroup;
	const struct perf_event *event;
	struct perf_event events[1 + PERF_MORE];
	unsigned int nr_events;
	unsigned long count;
	struct read_limit read_limit;
	const char *perf_data;
	struct push push;
	bool all;
	bool off_cpu;
	bool preempted;
	bool wakers;
	bool kernel;
	bool kernel_alone;
	bool mixed;
	bool heap;
	bool heap_mmap;
	bool heap_python;
	unsigned long heap_sample;
};

/* Sets the defaults. */
void record_options_init(struct record_opts *o);

/*
 * Checks that the options can be combined, and fills in those that depend on others. Returns 0, or
 * an exit status after printing the reason.
 */
int record_options_check(struct record_opts *o);

/*
 * Returns whether a sample stands for an amount of time. Otherwise it stands for a number of
 * events.
 */
bool record_counts_time(const struct record_opts *o);

/* Returns the first given option that only the kernel can serve, or NULL. */
const char *record_needs_kernel(const struct record_opts *o);

#endif
