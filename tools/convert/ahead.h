/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ahead.h - samples whose copies of stacks are unwound by threads before it is their turn to go into
 * the profile.
 *
 * Unwinding is what most of the time goes into where stacks are copied, and needs nothing of other
 * samples. So it is done by several threads. All else is done by one thread, the converter's, in the
 * order of the samples of each process: the profile is the same, however many threads there are.
 *
 *	converter's thread                    a thread of this file
 *	ahead_add(): copies the sample ---->  unwinds the copy
 *	ahead_first(): waits for that  <----  stores the stack
 *	ahead_drop_first()
 *
 * What a thread uses to unwind (struct unwinder) belongs to it alone. The mappings of a process must
 * not change while samples of it wait; convert.c sees to that.
 *
 * Samples of a thread of a program all go to the same thread here, so that one with few threads is not
 * read in all of them. They are handed over several at a time. What was not handed over when it is
 * wanted is left to the converter's thread: few samples wake nobody.
 */
#ifndef TOOLS_CONVERT_AHEAD_H
#define TOOLS_CONVERT_AHEAD_H

#include "tools/convert/population.h"
#include "tools/perf/sample.h"

#define AHEAD_MAX_THREADS MAPPINGS_WORKERS

struct ahead;

/**
 * struct ahead_sample - a sample that waits
 * @which: enum perf_which of the event.
 * @time: time of the record in ns, as convert_at() got it.
 * @process: its process.
 * @sample: the sample. The callchain and the copy of the stack are copies.
 * @unwound: its stack is unwound, or that failed. Set by ahead_first().
 * @err: 0, or the negative errno of unwinding it.
 * @user: the stack.
 */
struct ahead_sample {
	int which;
	uint64_t time;
	struct process *process;
	struct perf_sample sample;
	bool unwound;
	int err;
	struct unwound user;
};

/**
 * ahead_create() - start threads
 * @threads: how many, 1 to AHEAD_MAX_THREADS.
 * @depth: most entries of a stack.
 *
 * Return: what ahead_destroy() releases; NULL if there is no memory, or no thread can be started.
 */
struct ahead *ahead_create(unsigned int threads, unsigned int depth);

/* Ends the threads. @a may be NULL; samples that wait are forgotten. */
void ahead_destroy(struct ahead *a);

/**
 * ahead_add() - let a sample wait
 * @a: the threads.
 * @s: the sample: @which, @time, @process and @sample are used.
 *
 * Return: 0; -ENOSPC if as many samples wait as may; -ENOMEM.
 */
int ahead_add(struct ahead *a, const struct ahead_sample *s);

/*
 * Returns the sample that waits for longest, once its stack is unwound, if that was begun. It is valid
 * until ahead_drop_first(). Returns NULL if none waits.
 */
const struct ahead_sample *ahead_first(struct ahead *a);

/*
 * Forgets the stacks of all samples that wait, and waits until no more are being unwound: what they are
 * made of changes. ahead_first() gives these samples without their stacks.
 */
void ahead_drop_stacks(struct ahead *a);

/* Forgets the sample that waits for longest. */
void ahead_drop_first(struct ahead *a);

#endif
