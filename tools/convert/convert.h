/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * convert.h - makes a profile of the records of perf events.
 *
 * The caller hands over the records in the order of time: `shstk record` those of rings while it
 * records, `shstk unwind` those of a file. The converter keeps which processes and threads exist
 * and what they have mapped (population.h), makes stacks of samples (stacks.h), and adds them to a
 * profile. It does not know where the records come from, with one exception: living processes can
 * be asked for what no record told, those of a file cannot (@live of struct population).
 *
 *	rings or file            converter                        profile
 *	map, comm, fork, exit -> population: mappings of each
 *	sample                -> stacks_make() ---------------->  shstk_profile_add()
 *	                         or waits until a thread has unwound it (ahead.h)
 *	sample of a switch    -> kept with the thread
 *	waking                -> kept with the thread
 *	switch back           -> its time off the CPU --------->  shstk_profile_add()
 */
#ifndef TOOLS_CONVERT_CONVERT_H
#define TOOLS_CONVERT_CONVERT_H

#include "libshstk/symbol/profile.h"
#include "tools/convert/stacks.h"
#include "tools/convert/wakers.h"

struct ahead;

/**
 * enum off_time - kinds of time that a thread spends off its CPU
 * @OFF_ALL: all of it.
 * @OFF_WAITING: the thread waits for something.
 * @OFF_PREEMPTED: the thread could run, but others do.
 */
enum off_time {
	OFF_ALL,
	OFF_WAITING,
	OFF_PREEMPTED,
};

/**
 * struct convert_opts - how to convert
 * @source: what stacks are made of at first.
 * @kernel: which stacks have a kernel part.
 * @depth: most entries of a copy that is unwound.
 * @fold: unwind copies of deeper stacks, too, and shorten them (stack_deep.h).
 * @labels: give samples labels, where stacks are copied.
 * @keep_times: for how many samples the times are kept, in all profiles together; 0: for none.
 * @off: which kind of time off the CPU is wanted.
 * @wakers: names the threads that ended such a time, for labels, or NULL. It must outlive the
 *	converter.
 * @period: ns of CPU time that a sample stands for; 0: not known.
 * @languages: the languages whose functions are shown, or NULL. It must outlive the converter.
 * @contexts: trace contexts of threads, or NULL. It must outlive the converter.
 * @threads: how many threads work, where copies of stacks are unwound; 0 or 1: the caller's alone.
 */
struct convert_opts {
	enum stack_source source;
	enum kernel_part kernel;
	unsigned int depth;
	bool fold;
	bool labels;
	size_t keep_times;
	enum off_time off;
	struct wakers *wakers;
	uint64_t period;
	struct languages *languages;
	struct contexts *contexts;
	unsigned int threads;
};

/**
 * struct convert_counts - counts of what is in the profile
 * @samples: samples.
 * @weight: sum of the periods of the first event's samples, or of times off the CPU.
 * @threads: threads that have samples.
 * @processes: processes that have samples.
 * @truncated: stacks that are not complete, among them those of the next five counts.
 * @cut: stacks with as many entries as a stack may have.
 * @no_shadow: stacks of processes without a shadow stack, from before stacks were copied.
 * @too_short: stacks that go on behind their copy.
 * @elsewhere: stacks that continue on another stack.
 * @java: stacks of HotSpot's processes that end at code without unwind information.
 * @continued: stacks that are continued with what the thread had there before.
 * @read: stacks that are continued with what was read from the process before and after the sample.
 * @chained: stacks that are continued with the kernel's callchain.
 * @goroutines: stacks that are continued with the goroutine's stack, which a BPF program copied.
 * @folded: deep stacks that were shortened, so that both ends are there.
 * @walked: stacks that a BPF program walked.
 * @compat: samples of 32-bit code, whose callchains follow frame pointers.
 * @unseen: threads that ended sooner than a period, without a sample.
 * @ended: threads that began and ended while they were recorded, before @varied.
 * @varied: threads that began and ended since @varied of &struct converter.
 * @brief: those of them that lasted less than half a period. One that slept is none of these, however
 *	little it ran: no record tells how much CPU time a thread had that was not sampled.
 * @other_off: ns off the CPU of the kind that is not wanted.
 * @interpreted: stacks of processes that have an interpreter whose frames nobody reads.
 * @interpreter: name of the first one's file.
 */
struct convert_counts {
	uint64_t samples;
	uint64_t weight;
	uint32_t threads;
	uint32_t processes;
	uint64_t truncated;
	uint64_t cut;
	uint64_t no_shadow;
	uint64_t too_short;
	uint64_t elsewhere;
	uint64_t java;
	uint64_t continued;
	uint64_t read;
	uint64_t chained;
	uint64_t goroutines;
	uint64_t folded;
	uint64_t walked;
	uint64_t compat;
	uint64_t unseen;
	uint64_t ended;
	uint64_t varied;
	uint64_t brief;
	uint64_t other_off;
	uint64_t interpreted;
	char interpreter[32];
};

/* What is said of @interpreted, to be printed behind both counts; %s is @interpreter. */
#define CONVERT_INTERPRETED \
	"are of processes that have an interpreter (%s): the file has no functions of their programs, only the interpreter's own"

/* What is said of stacks that were shortened, to be printed behind their number. */
#define CONVERT_FOLDED \
	"are deeper than 1024 frames: what repeats in them is shown once, inside a frame such as [recursion of 2 calls] (see --depth)"

/**
 * struct convert_learnt - what the recorder may adapt to
 * @copies: stacks that were looked at since the size of copies changed; the recorder sets it to 0
 *	then.
 * @too_short: those of @copies whose copy was too small; the recorder sets it to 0 too.
 * @short_lived: threads of this profile that ended after no or few samples.
 * @no_shadow: ns of CPU time of processes without a shadow stack.
 * @no_shadow_longest: the longest time in ns that one of these processes is known.
 * @made: a process makes code at run time, which may be gone soon.
 * @go: a process runs code of Go.
 * @moved: CLOCK_MONOTONIC in ns, when a process last began, executed or mapped something.
 *
 * The converter sets these members. They are kept over profiles, except @short_lived.
 */
struct convert_learnt {
	uint64_t copies;
	uint64_t too_short;
	uint64_t short_lived;
	uint64_t no_shadow;
	uint64_t no_shadow_longest;
	bool made;
	bool go;
	uint64_t moved;
};

/**
 * struct convert_first - the thread of this profile's first sample, or the first thread that ended
 * before it had one: to it is added what has no sample
 * @proc: its process; NULL if there was no such thread so far.
 * @tid: its thread ID.
 * @comm: its name.
 */
struct convert_first {
	struct shstk_symproc *proc;
	int tid;
	char comm[TASK_COMM];
};

/**
 * struct converter - a conversion
 * @opts: the options that were given.
 * @all: processes and threads. Its time is that of the present record, see convert_at().
 * @stacks: how stacks are made now. @stacks.source may be changed between two records.
 * @profile: receives the samples.
 * @counts: counts of what is in @profile.
 * @varied: time in ns; threads that begin from then on have periods that vary; 0: none. The recorder's.
 * @weights: for each event (enum perf_which), sum of the periods of its samples in @profile.
 * @learnt: what the recorder may adapt to.
 * @first: the thread to which is added what has no sample.
 * @methods: room for a stack with Java's methods, or NULL.
 * @ahead: threads that unwind copies of stacks, with the samples that wait for that; NULL: none do.
 */
struct converter {
	struct convert_opts opts;
	struct population all;
	struct stacks stacks;
	struct shstk_profile *profile;
	struct convert_counts counts;
	uint64_t varied;
	uint64_t weights[PERF_WHICH];
	struct convert_learnt learnt;
	struct convert_first first;
	struct java_entries *methods;
	struct ahead *ahead;
};

/**
 * converter_create() - make a converter that knows no process
 * @opts: how to convert.
 * @symbols: finds names for addresses.
 * @profile: receives the samples: a count, and the event's period or the time.
 * @past: where the files of processes are that no longer live. NULL: the processes live. It must
 *	outlive the converter.
 *
 * Return: the converter, or NULL if there is no memory.
 */
struct converter *converter_create(const struct convert_opts *opts, struct shstk_symbols *symbols,
				   struct shstk_profile *profile,
				   const struct mappings_files *past);

/* Releases @c, which may be NULL. */
void converter_destroy(struct converter *c);

/* Adds samples to another profile from now on. Nothing of the old one is used any more. */
void converter_renew(struct converter *c, struct shstk_symbols *symbols,
		     struct shstk_profile *profile);

/* Sets the time of the next record, in ns, and makes room for new processes and threads. */
void convert_at(struct converter *c, uint64_t time);

/*
 * Adds the samples that wait for their stacks to the profile. What else is asked of the converter, or
 * changed in it, must come after this, except for further records. Returns 0 or a negative errno.
 */
int convert_settle(struct converter *c);

/* Prepares for what was read of a thread at its next sample. Returns 0 or a negative errno. */
int convert_read(struct converter *c, int tid);

/* Forgets a thread, because another one with its number has begun. Returns 0 or a negative errno. */
int convert_forget(struct converter *c, int tid);

/*
 * Looks whether the process has an interpreter, so that its frames can be read at its first sample.
 * Returns 0 or -ENOMEM.
 */
int convert_language(struct converter *c, int pid);

/* Take a record. Each returns 0 or a negative errno. */
int convert_map(struct converter *c, const struct perf_map *m);
int convert_comm(struct converter *c, const struct perf_comm *m);
int convert_fork(struct converter *c, const struct perf_fork *f);

/*
 * Takes the end of a thread. @later: the thread may still be sampled until it is reaped. Returns 0 or
 * -ENOMEM.
 */
int convert_exit(struct converter *c, const struct perf_fork *f, bool later);

/**
 * convert_sample() - take a sample
 * @c: the converter.
 * @which: enum perf_which of the event.
 * @sample: the sample.
 * @more: memory beside the copy of the stack, or NULL.
 *
 * Return: 0 or a negative errno.
 */
int convert_sample(struct converter *c, int which, const struct perf_sample *sample,
		   const struct memory_pieces *more);

/* Notes that a thread left its CPU at its last sample. @preempted: it could have gone on. */
void convert_leave(struct converter *c, int tid, bool preempted);

/* Notes that a waiting thread is woken at @time, in ns. */
void convert_waking(struct converter *c, const struct waking *waking, uint64_t time);

/* Takes the return of a thread to a CPU at @time, in ns. Returns 0 or -ENOMEM. */
int convert_return(struct converter *c, int tid, uint64_t time);

/*
 * Ends the times off the CPU of all threads at @time, in ns, when recording ended. Returns 0 or
 * -ENOMEM.
 */
int convert_end(struct converter *c, uint64_t time);

/*
 * Adds @value of event @which, which has no sample, to the profile as @note (enum shstk_note).
 * Returns 0 or -ENOMEM.
 */
int convert_unsampled(struct converter *c, int which, uint64_t value, int note);

#endif
