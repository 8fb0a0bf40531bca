/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mutex.h - which threads wait for a mutex, whose that is, and who waits for each other.
 *
 * What is said is what the C library keeps in the mutex. glibc keeps the owner of all kinds but
 * those with a priority ceiling, which are not known here; musl none of PTHREAD_MUTEX_NORMAL.
 */
#ifndef TOOLS_TRACE_MUTEX_H
#define TOOLS_TRACE_MUTEX_H

#include "tools/trace/trace.h"

#define MUTEX_SIZE 24 /* bytes of a mutex that are looked at */
#define MUTEX_FRAMES 8 /* innermost frames that are looked at */

/**
 * struct mutex_waiter - a thread of the process
 * @tid: its number.
 * @stopped: its registers and the mutexes are of one moment.
 * @waits: it waits for a mutex; the others below are of that.
 * @certain: everything could be verified.
 * @timed: it does not wait for longer than some time.
 * @mutex: address of the mutex.
 * @owner: thread that has it, as the mutex says; 0: it does not say.
 * @foreign: there is no such thread in the process.
 * @next: that thread, if it waits, too, and neither gives up after some time. Set by
 *	mutex_resolve(), as what follows.
 * @cycle: threads of the cycle of owners that it is part of, or 0.
 */
struct mutex_waiter {
	int tid;
	bool stopped;
	bool waits;
	bool certain;
	bool timed;
	uint64_t mutex;
	int owner;
	bool foreign;
	struct mutex_waiter *next;
	size_t cycle;
};

/**
 * mutex_word() - where the mutex is that a thread may wait for
 * @arch: enum shstk_arch.
 * @thread: its registers, and its system call.
 * @ret: receives the address of MUTEX_SIZE bytes.
 *
 * Return: could it wait for one?
 */
bool mutex_word(int arch, const struct trace_thread *thread, uint64_t *ret);

/**
 * mutex_find() - find out if a thread waits for a mutex, and what that says
 * @arch: enum shstk_arch.
 * @proc: names addresses.
 * @thread: a thread with its stack, of MUTEX_FRAMES frames at least.
 * @read: reads the program's memory as it was when the thread was stopped.
 * @arg: passed to @read.
 * @ret: receives it.
 */
void mutex_find(int arch, struct shstk_symproc *proc, const struct trace_thread *thread,
		shstk_read_fn read, void *arg, struct mutex_waiter *ret);

/**
 * mutex_resolve() - find owners and cycles
 * @list: all threads of the process; it is sorted by their numbers.
 * @nr: how many.
 */
void mutex_resolve(struct mutex_waiter *list, size_t nr);

/* The thread @tid of a sorted list, or NULL. */
struct mutex_waiter *mutex_waiter(struct mutex_waiter *list, size_t nr, int tid);

/* Below 0, 0 or above, as strcmp(3); 0: both wait for the same, or for nothing. */
int mutex_compare(const struct mutex_waiter *a, const struct mutex_waiter *b);

/* Print what it waits for; of a thread that does not, nothing. */
void mutex_print(const struct mutex_waiter *waiter);

/* The same as a value "waits_for" of JSON. */
void mutex_put(struct json *json, const struct mutex_waiter *waiter);

#endif
