// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ahead.c - unwinds copies of stacks in several threads. See ahead.h.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "tools/convert/ahead.h"

#define WAITING 128 /* samples that may wait for each thread */
#define TOGETHER 16 /* samples that are handed to a thread at a time */

/**
 * struct job - a sample that waits, and what is needed to unwind it
 * @of: the sample.
 * @memory: where what it points to lies: the stack that is made, the callchain, the copy.
 * @room: bytes of @memory.
 * @by: what its stack is unwound with; NULL: it was not handed over.
 * @worker: the thread that is to unwind it.
 * @number: how many samples the thread was given up to this one, if it was handed over.
 */
struct job {
	struct ahead_sample of;
	void *memory;
	size_t room;
	struct unwinder *by;
	struct worker *worker;
	uint64_t number;
};

/**
 * struct worker - a thread that unwinds
 * @thread: the thread.
 * @lock: guards @given, which only the converter's thread changes, @done, @awaited and @ends. The jobs
 *	from @done to @given are the thread's, with what they point to; the others are not.
 * @more: @given has grown, or @ends is set.
 * @progress: @done has reached @awaited.
 * @given: how many jobs the thread was given so far.
 * @done: how many of these are done.
 * @awaited: the converter's thread waits until so many are done; 0: it does not.
 * @ends: the thread is to end.
 * @jobs: what the thread was given, in a ring.
 * @max: elements of @jobs.
 * @known_done: what @done is, at least. For the converter's thread alone, as the next two.
 * @collected: samples that are handed over soon, the oldest first.
 * @nr_collected: how many.
 */
struct worker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more;
	pthread_cond_t progress;
	uint64_t given;
	uint64_t done;
	uint64_t awaited;
	bool ends;
	struct job **jobs;
	size_t max;
	uint64_t known_done;
	struct job *collected[TOGETHER];
	unsigned int nr_collected;
};

/**
 * struct ahead - samples that wait, and the threads that unwind their stacks
 * @workers: the threads.
 * @nr_workers: how many there are.
 * @depth: most entries of a stack.
 * @jobs: the samples, in a ring.
 * @max: elements of @jobs.
 * @first: number of the sample that waits for longest; its place is that modulo @max.
 * @next: number of the sample that is added next.
 */
struct ahead {
	struct worker workers[AHEAD_MAX_THREADS];
	unsigned int nr_workers;
	unsigned int depth;
	struct job *jobs;
	size_t max;
	uint64_t first;
	uint64_t next;
};

/* ---- A thread ---- */

static void unwind(struct job *j)
{
	const struct stack_copy copy = {
		.regs = &j->of.sample.regs,
		.bytes = j->of.sample.stack,
		.size = j->of.sample.stack_size,
	};

	j->of.err = unwinder_unwind(j->by, j->of.sample.pid, &copy, &j->of.user);
}

/* Waits until there are jobs. Returns how many were given so far; 0 to end. */
static uint64_t wait_for_jobs(struct worker *w)
{
	uint64_t given;

	pthread_mutex_lock(&w->lock);
	while (w->given == w->done && !w->ends)
		pthread_cond_wait(&w->more, &w->lock);
	given = w->ends ? 0 : w->given;
	pthread_mutex_unlock(&w->lock);
	return given;
}

static void tell_done(struct worker *w, uint64_t done)
{
	pthread_mutex_lock(&w->lock);
	w->done = done;
	if (w->awaited && done >= w->awaited) {
		w->awaited = 0;
		pthread_cond_signal(&w->progress);
	}
	pthread_mutex_unlock(&w->lock);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	uint64_t done = 0, given;

	pthread_setname_np(pthread_self(), "shstk-unwind");
	while ((given = wait_for_jobs(w)))
		while (done < given) {
			unwind(w->jobs[done % w->max]);
			tell_done(w, ++done);
		}
	return NULL;
}

/*
 * The recorder's signals are for its first thread. Those of a thread's own faults come nevertheless: the
 * recorder survives that a file is shortened which is mapped here (shortened.h).
 */
static int start(struct worker *w, size_t max)
{
	static const int faults[] = { SIGBUS, SIGFPE, SIGILL, SIGSEGV };
	sigset_t all, old;
	int err;

	w->jobs = calloc(max, sizeof(struct job *));
	if (!w->jobs)
		return -ENOMEM;
	w->max = max;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->more, NULL);
	pthread_cond_init(&w->progress, NULL);
	sigfillset(&all);
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		sigdelset(&all, faults[i]);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&w->thread, NULL, work, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!err)
		return 0;
	free(w->jobs);
	return -err;
}

static void end(struct worker *w)
{
	pthread_mutex_lock(&w->lock);
	w->ends = true;
	pthread_cond_signal(&w->more);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->more);
	pthread_cond_destroy(&w->progress);
	free(w->jobs);
}

/* ---- The converter's thread ---- */

struct ahead *ahead_create(unsigned int threads, unsigned int depth)
{
	struct ahead *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->depth = depth;
	a->max = (size_t)threads * WAITING;
	a->jobs = calloc(a->max, sizeof(*a->jobs));
	while (a->jobs && a->nr_workers < threads && !start(&a->workers[a->nr_workers], a->max))
		a->nr_workers++;
	if (a->nr_workers)
		return a;
	ahead_destroy(a);
	return NULL;
}

void ahead_destroy(struct ahead *a)
{
	if (!a)
		return;
	for (unsigned int i = 0; i < a->nr_workers; i++)
		end(&a->workers[i]);
	for (size_t i = 0; a->jobs && i < a->max; i++)
		free(a->jobs[i].memory);
	free(a->jobs);
	free(a);
}

static bool make_room(struct job *j, size_t size)
{
	if (size <= j->room)
		return true;
	free(j->memory);
	j->memory = malloc(size);
	j->room = j->memory ? size : 0;
	return j->memory;
}

/* Copies a sample, and makes room for a stack of @depth entries. Returns 0 or -ENOMEM. */
static int copy_sample(struct job *j, const struct ahead_sample *from, unsigned int depth)
{
	const struct perf_sample *s = &from->sample;
	const size_t entries = (2 * (size_t)depth + s->nr) * sizeof(uint64_t);
	uint64_t *at;

	if (!make_room(j, entries + depth + s->stack_size))
		return -ENOMEM;
	at = j->memory;
	j->of = *from;
	j->of.user = (struct unwound){ .pcs = at, .sps = at + depth, .max = depth };
	at += 2 * (size_t)depth;
	j->of.sample.chain = memcpy(at, s->chain, s->nr * sizeof(*at));
	j->of.user.marks = (uint8_t *)(at + s->nr);
	j->of.sample.stack = memcpy(j->of.user.marks + depth, s->stack, s->stack_size);
	return 0;
}

/* Hands to a thread what waits for it. What cannot be unwound there is left to the converter. */
static void hand_over(struct worker *w, unsigned int number)
{
	uint64_t given = w->given;

	for (unsigned int i = 0; i < w->nr_collected; i++) {
		struct job *j = w->collected[i];
		const struct ahead_sample *s = &j->of;

		j->by = mappings_unwinder(s->process->mappings, s->process->pid, number,
					  s->sample.regs.pc);
		if (!j->by)
			continue;
		w->jobs[given++ % w->max] = j;
		j->number = given;
	}
	w->nr_collected = 0;
	pthread_mutex_lock(&w->lock);
	w->given = given;
	pthread_cond_signal(&w->more);
	pthread_mutex_unlock(&w->lock);
}

int ahead_add(struct ahead *a, const struct ahead_sample *s)
{
	const unsigned int number = ((uint32_t)s->sample.tid * 0x9e3779b1u >> 16) % a->nr_workers;
	struct job *j = &a->jobs[a->next % a->max];
	struct worker *w = &a->workers[number];
	int err;

	if (a->next - a->first == a->max)
		return -ENOSPC;
	err = copy_sample(j, s, a->depth);
	if (err)
		return err;
	j->worker = w;
	j->by = NULL;
	a->next++;
	w->collected[w->nr_collected++] = j;
	if (w->nr_collected == TOGETHER)
		hand_over(w, number);
	return 0;
}

/*
 * Waits until a thread has done the job with that number. If it has to wait, it does so until half of
 * what the thread was given is done: each time costs a switch of threads.
 */
static void wait_until_done(struct worker *w, uint64_t number)
{
	if (w->known_done >= number)
		return;
	pthread_mutex_lock(&w->lock);
	while (w->done < number) {
		w->awaited = number + (w->given - number) / 2;
		pthread_cond_wait(&w->progress, &w->lock);
	}
	w->known_done = w->done;
	pthread_mutex_unlock(&w->lock);
}

const struct ahead_sample *ahead_first(struct ahead *a)
{
	struct job *j = &a->jobs[a->first % a->max];

	if (a->first == a->next)
		return NULL;
	if (j->by)
		wait_until_done(j->worker, j->number);
	j->of.unwound = j->by;
	if (!j->by)
		j->of.err = 0;
	return &j->of;
}

void ahead_drop_stacks(struct ahead *a)
{
	for (uint64_t i = a->first; i < a->next; i++) {
		struct job *j = &a->jobs[i % a->max];

		if (j->by)
			wait_until_done(j->worker, j->number);
		j->by = NULL;
	}
}

void ahead_drop_first(struct ahead *a)
{
	const struct job *j = &a->jobs[a->first++ % a->max];
	struct worker *w = j->worker;

	/* Of a thread's samples, the one that waits for longest was collected first. */
	if (!w->nr_collected || w->collected[0] != j)
		return;
	w->nr_collected--;
	memmove(w->collected, w->collected + 1, w->nr_collected * sizeof(*w->collected));
}
