/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mutex.h - which threads wait for a mutex or a read-write lock, which thread owns it, and who waits
 * for each other.
 *
 * All facts are what the C library keeps in the mutex. glibc keeps the owner of all kinds of
 * mutexes except those with a priority ceiling, which are not supported here. musl keeps no owner
 * in a PTHREAD_MUTEX_NORMAL. glibc keeps the writer of a read-write lock; nobody keeps its readers.
 */
#ifndef TOOLS_TRACE_MUTEX_H
#define TOOLS_TRACE_MUTEX_H

#include "tools/trace/trace.h"

#define MUTEX_SIZE 24 /* bytes of a mutex that are read */
#define MUTEX_FRAMES 8 /* number of innermost frames that are read */

/**
 * struct mutex_waiter - a thread of the process, and the mutex that it waits for
 * @tid: thread ID.
 * @own_tid: the same in the process's own PID namespace, as mutexes have it.
 * @stopped: its registers and the mutexes were read while all threads stood still.
 * @waits: it waits for a mutex. The members below are valid only then.
 * @certain: everything that is said could be verified.
 * @timed: it waits for a limited time only.
 * @rwlock: what is called a mutex here is a read-write lock.
 * @refused: the kernel refused the mutex, which inherits priorities, because the thread would wait for
 *	itself, or because the owner has ended. The thread waits for ever.
 * @mutex: address of the mutex. 0: of one that was refused it is not known.
 * @owner: ID of the thread that has the mutex, 0 if the mutex does not say it: the thread's own one until
 *	mutex_resolve() has found the thread.
 * @foreign: the process has no thread @owner.
 * @next: the owner, if it waits, too, and neither of the two waits for a limited time; or NULL. Set
 *	by mutex_resolve().
 * @cycle: number of threads in the cycle of owners that it is part of, or 0. Set by
 *	mutex_resolve().
 */
struct mutex_waiter {
	int tid;
	int own_tid;
	bool stopped;
	bool waits;
	bool certain;
	bool timed;
	bool rwlock;
	bool refused;
	uint64_t mutex;
	int owner;
	bool foreign;
	struct mutex_waiter *next;
	size_t cycle;
};

/**
 * mutex_word() - get the address of what must be read of the mutex that a thread may wait for
 * @arch: enum shstk_arch.
 * @thread: the thread; its registers and its system call are used.
 * @read: reads the program's memory, as it is while the thread is stopped.
 * @arg: passed to @read.
 * @ret: receives the address of MUTEX_SIZE bytes.
 *
 * Return: true if the thread may wait for a mutex.
 */
bool mutex_word(int arch, const struct trace_thread *thread, shstk_read_fn read, void *arg,
		uint64_t *ret);

/**
 * mutex_find() - find out whether a thread waits for a mutex, and who owns the mutex
 * @arch: enum shstk_arch.
 * @proc: names addresses.
 * @thread: the thread, whose stack was taken with MUTEX_FRAMES frames at least.
 * @read: reads the program's memory as it was when the thread was stopped.
 * @arg: passed to @read.
 * @ret: receives the result.
 */
void mutex_find(int arch, struct shstk_symproc *proc, const struct trace_thread *thread,
		shstk_read_fn read, void *arg, struct mutex_waiter *ret);

/**
 * mutex_resolve() - find the owners among the threads, and the cycles
 * @list: all threads of the process. They are sorted by their own thread IDs.
 * @nr: number of threads.
 */
void mutex_resolve(struct mutex_waiter *list, size_t nr);

/* Returns the thread with that own ID of a list that is sorted by these, or NULL. */
struct mutex_waiter *mutex_waiter(struct mutex_waiter *list, size_t nr, int own_tid);

/* Compares as strcmp(3) does. Returns 0 if both wait for the same mutex alike, or for none. */
int mutex_compare(const struct mutex_waiter *a, const struct mutex_waiter *b);

/* Prints the mutex that a thread waits for. Prints nothing if it waits for none. */
void mutex_print(const struct mutex_waiter *waiter);

/* Writes the same facts as a JSON value "waits_for". */
void mutex_put(struct json *json, const struct mutex_waiter *waiter);

#endif
