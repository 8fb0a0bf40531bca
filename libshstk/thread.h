/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * thread.h - what the library keeps per thread: bounds of its stack, its last
 * trace, whether a capture is running.
 *
 * A state belongs to one thread at a time and is written by it alone; others
 * only read @depth (to know when retired memory may go) and the counters. States
 * are mapped on the first capture, wherever that is, and reused, never unmapped.
 */
#ifndef SHSTK_THREAD_H
#define SHSTK_THREAD_H

#include "call.h"
#include "memo.h"
#include "scratch.h"

/**
 * struct thread - state of one thread
 * @native: the stack it was started on, once known; permanent.
 * @native_known: @native is valid.
 * @shadow: the hardware shadow stack that belongs to @native, once known.
 * @shadow_end: address behind the outermost entry of @shadow, once seen; else 0.
 * @shadow_last: that entry.
 * @depth: captures in progress that may look at modules: see enter.h.
 * @busy_sp: stack address of the outermost capture in progress; 0: there is none.
 * @captures: counter.
 * @walks: captures that reused nothing.
 * @memo: last trace.
 * @call: the call of the outermost capture in progress, if that began by a fast way:
 *	these go from one to the next by jumps, with nothing of theirs on the stack. Its @ssp
 *	is 0.
 * @scratch: large variables of captures in progress.
 * @pid: process and thread that own the state; @tid 0: nobody.
 * @tid: see @pid.
 * @next: list of all states.
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
	struct call call;
	struct scratch scratch;
	int pid;
	int tid;
	struct thread *next;
};

extern __thread struct thread *thread_self __attribute__((tls_model("initial-exec")));

/* The state of the calling thread; NULL if there is no memory for one. */
struct thread *thread_get_slow(void);

static inline struct thread *thread_get(void)
{
	struct thread *t = thread_self;

	return likely(t) ? t : thread_get_slow();
}

/* Is any capture in progress, but for the calling thread's outermost one? */
bool thread_any_busy(void);

void thread_stats(struct shstk_stats *stats);

#endif
