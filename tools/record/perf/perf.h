/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perf.h - `shstk record` with the kernel's eyes: samples of perf_event_open(2), with
 * callchains that shstk_perf.ko takes from shadow stacks, or with copies of stacks,
 * which are unwound here.
 */
#ifndef TOOLS_RECORD_PERF_PERF_H
#define TOOLS_RECORD_PERF_PERF_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/convert/convert.h"
#include "tools/perf/rings.h"
#include "tools/reason.h"
#include "tools/record/agent/drain.h"

/**
 * struct perf_record_opts - what to record
 * @rings: events and targets; @rings.pids are processes here, whose threads are
 *	looked up, unless @threads.
 * @depth: most entries of a stack that is unwound.
 * @kernel: show the kernel's part of callchains, if @rings has it; else only where there is no
 *	other stack.
 * @chains: callchains are exact where there is a shadow stack (shstk_perf.ko).
 * @mixed: callchains are taken as long as all processes have shadow stacks, and stacks are copied
 *	from when one is met that has none.
 * @tree: the one process of @rings is about to execute a program: it is recorded from there
 *	on, with all it starts, by events of the CPUs. Events of its own would begin anew
 *	in each process, and never see those that end sooner than a period.
 * @given: the first so many targets of @rings were asked for, the others are their children:
 *	recording is over when those have ended.
 * @threads: they are threads: other threads of their processes are not recorded.
 * @off: which of the times off the CPU are wanted.
 * @wakers: says when waiting ends, and who ended it; or NULL. It must outlive the recording.
 * @may_coarsen: where @rings.count samples turn out to be more than can be taken, it grows.
 * @perf_data: file to write the kernel's records to as well, or NULL.
 * @keep_times: keep the times of so many samples, in all profiles; 0: of none.
 * @walker: walks stacks in the kernel; NULL: nobody does. It must outlive the recording.
 * @labels: give samples the labels of their goroutines, where stacks are copied.
 */
struct perf_record_opts {
	struct perf_opts rings;
	unsigned int depth;
	bool kernel;
	bool chains;
	bool mixed;
	bool tree;
	size_t given;
	bool threads;
	bool may_coarsen;
	enum off_time off;
	struct wakers *wakers;
	const char *perf_data;
	size_t keep_times;
	const struct walker *walker;
	bool labels;
};

/**
 * struct perf_counts - what came, beside what struct drain_counts has
 * @stacks: what was converted.
 * @copy: bytes of each stack that are copied now.
 * @count: events from one sample to the next, if that is fixed.
 * @throttled: times that the kernel held the event back.
 * @unwritten: 0, or a negative errno: the perf.data file is not complete.
 */
struct perf_counts {
	struct convert_counts stacks;
	unsigned int copy;
	uint64_t count;
	uint64_t throttled;
	int unwritten;
};

#define PERF_FIRST_COPY 8192 /* bytes of each stack; more if that is too small for some */

#define PERF_AFFORDED 20000 /* samples in a second, where each event is one */

struct perf_drain;

/**
 * perf_drain_create() - begin
 * @opts: what to record.
 * @symbols: names what is found.
 * @profile: receives the samples: a count, and the event's or the time.
 * @ret: receives it.
 * @why: receives why not.
 *
 * Return: 0 or a negative errno.
 */
int perf_drain_create(const struct perf_record_opts *opts, struct shstk_symbols *symbols,
		      struct shstk_profile *profile, struct perf_drain **ret, struct reason *why);
void perf_drain_destroy(struct perf_drain *d);

/* Takes what is in the rings. Returns 0 or -ENOMEM. */
int perf_drain_take(struct perf_drain *d);

/*
 * Is there no hurry to take what is recorded for @ns from now on? No process begins or maps
 * anything, none has memory that is looked into for its samples, and the rings have room.
 */
bool perf_drain_calm(const struct perf_drain *d, uint64_t ns);

/* From now on samples are for another profile; nothing of the old one is used. */
void perf_drain_renew(struct perf_drain *d, struct shstk_symbols *symbols,
		      struct shstk_profile *profile);

/* No more samples from now on; takes what is left. */
int perf_drain_stop(struct perf_drain *d);

/* Number of the processes given that still live. */
unsigned int perf_drain_alive(const struct perf_drain *d);

/* Calls @fn for each process that was recorded and still lives, if not all are recorded. */
void perf_drain_left(struct perf_drain *d, void (*fn)(void *arg, int pid), void *arg);

/* Bytes of its rings. */
uint64_t perf_drain_shared(const struct perf_drain *d);

/* Only user mode is sampled, because more is not permitted. */
bool perf_drain_user_only(const struct perf_drain *d);

/*
 * What event @which (enum perf_which) counted itself of what is recorded, sampled or not, in this profile. False: it
 * is not known, as the events are the CPUs'.
 */
bool perf_drain_whole(const struct perf_drain *d, int which, uint64_t *ret);

/* What the samples of event @which stand for, in this profile. */
uint64_t perf_drain_weight(const struct perf_drain *d, int which);

/* So much of it has no sample: shows it as @note (enum shstk_note). Returns 0 or -ENOMEM. */
int perf_drain_unsampled(struct perf_drain *d, int which, uint64_t value, int note);

/* The events are the broker's. */
bool perf_drain_borrowed(const struct perf_drain *d);

void perf_drain_count(const struct perf_drain *d, struct drain_counts *ret,
		      struct perf_counts *more);

#endif
