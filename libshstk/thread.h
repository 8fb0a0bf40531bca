/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * thread.h - the state that the library keeps for each thread: bounds of its stack, its
 * last trace, whether a capture is running.
 *
 * A state belongs to one thread at a time, and only this thread writes it. Other threads
 * only read @depth (to know when retired memory can be unmapped) and the counters. A state
 * is mapped by the thread's first capture, also in a signal handler. States are reused and
 * never unmapped.
 */
#ifndef SHSTK_THREAD_H
#define SHSTK_THREAD_H

#include "call.h"
#include "memo.h"
#include "places.h"
#include "scratch.h"

/**
 * struct thread - state of one thread
 * @native: bounds of the stack that the thread was started on, once known.
 * @native_known: @native is valid.
 * @shadow: bounds of the hardware shadow stack that belongs to @native, once known.
 * @shadow_end: address behind the outermost entry of @shadow, once seen; otherwise 0.
 * @shadow_last: the outermost entry of @shadow.
 * @depth: number of captures in progress that may look at modules: see enter.h.
 * @busy_sp: stack address of the outermost capture in progress; 0 if there is none.
 * @captures: number of captures.
 * @walks: number of captures that reused nothing of the last trace.
 * @memo: the last trace.
 * @places: other traces.
 * @call: the arguments of the outermost capture in progress, if it began on a fast path: the
 *	functions of the fast paths jump to each other and keep nothing on the stack. Its @ssp
 *	is 0.
 * @scratch: memory for large variables of captures in progress.
 * @pid: process ID of the thread that owns the state; -1 in the first thread of a forked child.
 * @tid: thread ID of the owner; 0 if nobody owns the state, -1 in the first thread of a forked
 *	child.
 * @next: the next one in the list of all states.
 */
struct thread {
	struct range native;
	bool native_known;
	struct range shadow;
	uint64_t shadow_end;
	uint64_t shadow_last;
	uint32_t depth;
	uint64_t busy_sp;
	uint64_t captures;
	uint64_t walks;
	struct memo memo;
	struct places *places;
	struct call call;
	struct scratch scratch;
	int pid;
	int tid;
	struct thread *next;
};

extern __thread struct thread *thread_self __attribute__((tls_model("initial-exec")));

/*
 * Returns the state of the calling thread and makes one if there is none. Returns NULL if there is
 * no memory for it, or after shstk_seal().
 */
struct thread *thread_get_slow(void);

static inline struct thread *thread_get(void)
{
	struct thread *t = thread_self;

	return likely(t) ? t : thread_get_slow();
}

/* Tells whether any capture is in progress, not counting the calling thread's outermost one. */
bool thread_any_busy(void);

void thread_stats(struct shstk_stats *stats);

#endif
