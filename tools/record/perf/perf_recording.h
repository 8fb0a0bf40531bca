/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perf_recording.h - the part of `shstk record` that samples by perf_event_open(2), with callchains that
 * shstk_perf.ko takes from shadow stacks, or with copies of stacks, which are unwound here.
 */
#ifndef TOOLS_RECORD_PERF_PERF_RECORDING_H
#define TOOLS_RECORD_PERF_PERF_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/convert/convert.h"
#include "tools/convert/contexts.h"
#include "tools/language/languages.h"
#include "tools/perf/rings.h"
#include "tools/reason.h"
#include "tools/record/sample_counts.h"

/**
 * struct perf_record_opts - what to record
 * @rings: events and targets. @rings.pids are processes, whose threads are looked up here, unless
 * @threads.
 * @depth: most entries of a stack that is unwound.
 * @fold: unwind copies of deeper stacks, too, and show once what repeats in them.
 * @kernel: show the kernel's part of callchains, if @rings has it; otherwise that part is shown
 *	only where there is no other stack.
 * @chains: callchains are exact where there is a shadow stack (shstk_perf.ko).
 * @mixed: callchains are taken as long as all processes have shadow stacks; stacks are copied once
 *	a process without a shadow stack is met.
 * @tree: the one process of @rings is about to execute a program. It is recorded from then on, with
 *	all processes that it starts, by events of the CPUs. Events of the process would begin anew
 *	in each child, and never see children that end sooner than a period.
 * @given: how many targets of @rings were asked for; they come first, the others are their
 *	children. Recording is over when the targets that were asked for have ended.
 * @threads: the targets are threads: other threads of their processes are not recorded.
 * @may_widen: events of the CPUs may be opened instead of those of the targets, if these are too many.
 * @may_coarsen: @rings.count may grow if there are more samples than can be taken.
 * @off: which times off the CPU are wanted.
 * @wakers: finds when waiting ends and who ended it, or NULL. It must outlive the recording.
 * @perf_data: file to which the kernel's records are written as well, or NULL.
 * @keep_times: for how many samples the times are kept, in all profiles together; 0: for none.
 * @walker: walks stacks in the kernel, or NULL. It must outlive the recording.
 * @later: will walk them if the recording lasts, or NULL; it is not started yet. It must outlive the
 *	recording, too.
 * @languages: the languages whose functions are shown, or NULL. It must outlive the recording.
 * @functions: functions are shown.
 * @contexts: trace contexts of threads, or NULL. They must outlive the recording.
 * @labels: give samples the labels of their goroutines, where stacks are copied.
 * @nr_threads: how many threads work, where copies of stacks are unwound (&struct convert_opts.threads).
 */
struct perf_record_opts {
	struct perf_opts rings;
	unsigned int depth;
	bool fold;
	bool kernel;
	bool chains;
	bool mixed;
	bool tree;
	size_t given;
	bool threads;
	bool may_widen;
	bool may_coarsen;
	enum off_time off;
	struct wakers *wakers;
	const char *perf_data;
	size_t keep_times;
	struct walker *walker;
	struct walker *later;
	struct languages *languages;
	bool functions;
	struct contexts *contexts;
	bool labels;
	unsigned int nr_threads;
};

/**
 * struct perf_counts - counts of a recording beside those of struct sample_counts
 * @stacks: counts of the converter.
 * @copy: bytes of each stack that are copied now.
 * @count: events from one sample to the next, 0 if that is not fixed.
 * @anew: the event begins anew in each thread, as it is of threads, not of CPUs.
 * @throttled: how often the kernel held the event back.
 * @refused_threads: how many threads have no events though they should, because that was not possible.
 * @refused_why: why, as a negative errno.
 * @unwritten: 0, or a negative errno if the perf.data file is not complete.
 * @languages: what became of the frames of interpreters, of all profiles together.
 * @contexts_refused: why trace contexts are not read, or NULL.
 * @refused: why an interpreter's functions are not shown, or NULL.
 */
struct perf_counts {
	struct convert_counts stacks;
	unsigned int copy;
	uint64_t count;
	bool anew;
	uint64_t throttled;
	size_t refused_threads;
	int refused_why;
	int unwritten;
	struct language_counts languages;
	const char *contexts_refused;
	const char *refused;
};

#define PERF_FIRST_COPY 8192 /* bytes of a stack copied at first, at least; see perf_first_copy() */

#define PERF_AFFORDED 20000 /* samples in a second, at most, where each event is a sample */

/**
 * perf_first_copy() - choose how much of each stack is copied at first
 * @opts: the options of the rings; @opts->ring_size is the size of a ring if it must not be larger.
 *
 * The kernel copies only what there is of a stack, so for a small stack a larger copy costs nothing
 * but room in the ring. Stacks that are larger than the first copies are cut until the recorder has
 * taken larger ones, which is a good part of all samples if a program runs for half a second only.
 *
 * Return: bytes: PERF_FIRST_COPY, or 32 KiB where a ring can hold what one thread that runs all the
 * time is sampled for in a second.
 */
unsigned int perf_first_copy(const struct perf_opts *opts);

struct perf_recording;

/**
 * perf_recording_create() - begin to record
 * @opts: what to record.
 * @symbols: finds names for addresses.
 * @profile: receives the samples: a count, and events or time.
 * @ret: receives the recording.
 * @why: receives the reason of a failure.
 *
 * Return: 0 or a negative errno.
 */
int perf_recording_create(const struct perf_record_opts *opts, struct shstk_symbols *symbols,
			  struct shstk_profile *profile, struct perf_recording **ret,
			  struct reason *why);
void perf_recording_destroy(struct perf_recording *d);

/* Takes what is in the rings. Returns 0 or -ENOMEM. */
int perf_recording_take(struct perf_recording *d);

/*
 * Gives threads that begin from now on another period, where that is possible and matters. The process whose
 * events were opened must be one that only waits: its event begins a period anew.
 */
void perf_recording_vary(struct perf_recording *d);

/*
 * Returns whether there is no hurry to take records during the next @ns: no process begins or maps
 * anything, none has memory that is read for its samples, and the rings have room.
 */
bool perf_recording_calm(const struct perf_recording *d, uint64_t ns);

/* Adds samples to another profile from now on. Nothing of the old one is used any more. */
void perf_recording_renew(struct perf_recording *d, struct shstk_symbols *symbols,
			  struct shstk_profile *profile);

/* Stops sampling and takes what is left. Returns 0 or a negative errno. */
int perf_recording_stop(struct perf_recording *d);

/* Returns how many of the processes that were asked for still live. */
unsigned int perf_recording_alive(const struct perf_recording *d);

/*
 * Calls @fn for each recorded process that still lives. Does nothing if the whole system or a
 * cgroup is recorded.
 */
void perf_recording_left(struct perf_recording *d, void (*fn)(void *arg, int pid), void *arg);

/* Returns the bytes of the rings. */
uint64_t perf_recording_shared(const struct perf_recording *d);

/* Returns whether only user mode is sampled, because more is not permitted. */
bool perf_recording_user_only(const struct perf_recording *d);

/* Returns whether the events are those of the CPUs, as there were too many targets. */
bool perf_recording_widened(const struct perf_recording *d);

/*
 * Writes to @ret how much event @which (enum perf_which) counted of what is recorded, sampled or
 * not, during this profile. Returns false if that is not known, as the events are those of the
 * CPUs.
 */
bool perf_recording_whole(const struct perf_recording *d, int which, uint64_t *ret);

/* Returns how much of event @which the samples of this profile stand for. */
uint64_t perf_recording_weight(const struct perf_recording *d, int which);

/*
 * Adds @value of event @which, which has no sample, to the profile as @note (enum shstk_note).
 * Returns 0 or -ENOMEM.
 */
int perf_recording_unsampled(struct perf_recording *d, int which, uint64_t value, int note);

/* Returns whether the broker opened the events. */
bool perf_recording_borrowed(const struct perf_recording *d);

/* Returns whether stacks are walked in the kernel by what the broker lends. */
bool perf_recording_lent(const struct perf_recording *d);

/* Writes to @ret which CPUs lost how many records of this profile so far. */
void perf_recording_lost(const struct perf_recording *d, struct perf_losses *ret);

/* Fills in the counts of this profile so far. @more may be NULL. */
void perf_recording_count(const struct perf_recording *d, struct sample_counts *ret,
			  struct perf_counts *more);

#endif
