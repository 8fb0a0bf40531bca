/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * convert.h - from what perf events told to a profile.
 *
 * Who has the records hands them over in the order of time: `shstk record` those of rings while
 * it records, `shstk unwind` those of a file. Here it is kept which processes and threads there
 * were and what they had mapped (population.h), stacks are made of samples (stacks.h), and both
 * go into a profile. Nothing here knows where the records are from, but for one thing: processes
 * that live can be asked what no record told, those of a file cannot (struct population, @live).
 *
 *	rings or file            converter                        profile
 *	map, comm, fork, exit -> population: layout of each
 *	sample                -> stacks_make() ---------------->  shstk_profile_add()
 *	sample of a switch    -> kept with the thread
 *	waking                -> kept with the thread
 *	switch back           -> its time off the CPU --------->  shstk_profile_add()
 */
#ifndef TOOLS_CONVERT_CONVERT_H
#define TOOLS_CONVERT_CONVERT_H

#include "libshstk/symbol/profile.h"
#include "tools/convert/stacks.h"
#include "tools/convert/wakers.h"

/**
 * enum off_time - times of a thread off its CPU
 * @OFF_ALL: all.
 * @OFF_WAITING: it waits for something.
 * @OFF_PREEMPTED: it could run, but others do.
 */
enum off_time {
	OFF_ALL,
	OFF_WAITING,
	OFF_PREEMPTED,
};

/**
 * struct convert_opts - how to convert
 * @source: what stacks are made of at first.
 * @kernel: which stacks have a part of the kernel's.
 * @depth: most entries of a copy that is unwound.
 * @labels: give samples labels, where stacks are copied.
 * @keep_times: keep the times of so many samples, in all profiles; 0: of none.
 * @off: which of the times off the CPU are wanted.
 * @wakers: names who ended such a time, for labels; NULL: nobody does. It must outlive this.
 * @period: ns of CPU time that a sample stands for; 0: not known.
 */
struct convert_opts {
	enum stack_source source;
	enum kernel_part kernel;
	unsigned int depth;
	bool labels;
	size_t keep_times;
	enum off_time off;
	struct wakers *wakers;
	uint64_t period;
};

/**
 * struct convert_counts - what is in the profile, counted as it was added
 * @samples: samples.
 * @weight: sum of their first event's periods.
 * @threads: threads that have some.
 * @processes: processes that have some.
 * @truncated: stacks that are not whole; of these are the next six.
 * @cut: those with as many entries as a stack may have.
 * @bare: those of processes without a shadow stack, before stacks were copied.
 * @too_short: those that go on behind what was copied.
 * @elsewhere: those that go on on another stack.
 * @java: those of HotSpot's processes that end at code without unwind information.
 * @continued: stacks that go on with what the thread had there before.
 * @read: others, with what was read from the process before and after the sample.
 * @chained: stacks that go on with what the kernel's callchain has behind the copy.
 * @goroutines: stacks that go on with that of the goroutine, which a BPF program copied.
 * @walked: stacks that a BPF program walked.
 * @compat: samples of 32-bit code, whose callchains follow frame pointers.
 * @unseen: threads that ended sooner than a period, without a sample.
 * @other_off: ns off the CPU of the kind that is not wanted.
 */
struct convert_counts {
	uint64_t samples;
	uint64_t weight;
	uint32_t threads;
	uint32_t processes;
	uint64_t truncated;
	uint64_t cut;
	uint64_t bare;
	uint64_t too_short;
	uint64_t elsewhere;
	uint64_t java;
	uint64_t continued;
	uint64_t read;
	uint64_t chained;
	uint64_t goroutines;
	uint64_t walked;
	uint64_t compat;
	uint64_t unseen;
	uint64_t other_off;
};

/**
 * struct convert_learnt - what who records may adapt to; set here, and kept over profiles
 * @copies: stacks that were looked at since the size of copies changed; set to 0 by who does that.
 * @too_short: of these, those whose copy was too small; likewise.
 * @short_lived: threads of this profile that ended after none or few samples.
 * @bare: ns of CPU time of processes without a shadow stack.
 * @bare_longest: the most ns that one of them is known for.
 * @made: a process makes code at run time, which may be gone soon.
 * @go: a process runs code of Go.
 * @moved: when a process last began something, ns.
 */
struct convert_learnt {
	uint64_t copies;
	uint64_t too_short;
	uint64_t short_lived;
	uint64_t bare;
	uint64_t bare_longest;
	bool made;
	bool go;
	uint64_t moved;
};

/**
 * struct convert_first - who had the first sample of this profile; for what has no sample
 * @proc: its process, NULL: there was none so far.
 * @tid: its thread.
 * @comm: the name of that.
 */
struct convert_first {
	struct shstk_symproc *proc;
	int tid;
	char comm[TASK_COMM];
};

/**
 * struct converter - a conversion
 * @opts: how, as was asked for.
 * @all: who there is. Its time is that of the record at hand, see convert_at().
 * @stacks: how stacks are made now; @stacks.source may be changed between two records.
 * @profile: receives the samples.
 * @counts: what is in @profile.
 * @weights: sum of the periods of each event's samples (enum perf_which) in @profile.
 * @learnt: what may be adapted to.
 * @first: who had the first sample in @profile.
 */
struct converter {
	struct convert_opts opts;
	struct population all;
	struct stacks stacks;
	struct shstk_profile *profile;
	struct convert_counts counts;
	uint64_t weights[PERF_WHICH];
	struct convert_learnt learnt;
	struct convert_first first;
};

/**
 * converter_create() - begin with nobody
 * @opts: how to convert.
 * @symbols: names what is found.
 * @profile: receives the samples: a count, and the event's period or the time.
 * @past: where the files of processes are that live no more; NULL: they live. Must outlive it.
 *
 * Return: the converter, NULL when memory runs out.
 */
struct converter *converter_create(const struct convert_opts *opts, struct shstk_symbols *symbols,
				   struct shstk_profile *profile, const struct layout_files *past);

/* @c may be NULL. */
void converter_destroy(struct converter *c);

/* From now on samples are for another profile; nothing of the old one is used. */
void converter_renew(struct converter *c, struct shstk_symbols *symbols,
		     struct shstk_profile *profile);

/* The next record is of that time, ns: those that ended long ago are forgotten. */
void convert_at(struct converter *c, uint64_t time);

/* Each takes a record, and returns 0 or -ENOMEM. */
int convert_map(struct converter *c, const struct perf_map *m);
int convert_comm(struct converter *c, const struct perf_comm *m);
int convert_fork(struct converter *c, const struct perf_fork *f);

/* A thread ended; @later: it may be sampled still, until it is reaped. */
void convert_exit(struct converter *c, const struct perf_fork *f, bool later);

/**
 * convert_sample() - take a sample
 * @c: the conversion.
 * @which: enum perf_which of the event.
 * @sample: the sample.
 * @more: memory beside its copy, or NULL.
 *
 * Return: 0 or a negative errno.
 */
int convert_sample(struct converter *c, int which, const struct perf_sample *sample,
		   const struct memory_pieces *more);

/* A thread left its CPU after its last sample: it could have run still, if it was @preempted. */
void convert_leave(struct converter *c, int tid, bool preempted);

/* A thread that waits is woken at @time, ns. */
void convert_waking(struct converter *c, const struct waking *waking, uint64_t time);

/* It is back at @time, ns. Returns 0 or -ENOMEM. */
int convert_return(struct converter *c, int tid, uint64_t time);

/* Recording ended at @time: until then threads were off their CPU. Returns 0 or -ENOMEM. */
int convert_end(struct converter *c, uint64_t time);

/* So much of event @which has no sample: shows it as @note (enum shstk_note). 0 or -ENOMEM. */
int convert_unsampled(struct converter *c, int which, uint64_t value, int note);

#endif
