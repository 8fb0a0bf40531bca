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

#include "marker.h"
#include "memo.h"

/**
 * struct thread - state of one thread
 * @native: the stack it was started on, once known; permanent.
 * @native_known: @native is valid.
 * @shadow: the hardware shadow stack that belongs to @native, once known.
 * @outer: address behind the outermost entry of @shadow, once seen; that entry.
 * @outermost: see @outer.
 * @depth: captures in progress: 2 and more are nested in signal handlers.
 * @busy_sp: stack address of the outermost one; 0: there is none.
 * @captures: counter.
 * @walks: captures that reused nothing.
 * @reused: entries that the capture in progress took from the memo.
 * @memo: last trace.
 * @marker: marked return addresses.
 * @begun: what the capture in progress is for, where that is not handed on: see
 *	capture_again().
 * @pid: process and thread that own the state; @tid 0: nobody.
 * @tid: see @pid.
 * @next: list of all states.
 */
struct thread {
	struct range native;
	bool native_known;
	struct range shadow;
	uint64_t outer;
	uint64_t outermost;
	uint32_t depth;
	uint64_t busy_sp;
	uint64_t captures;
	uint64_t walks;
	unsigned int reused;
	struct memo memo;
	struct markers marker;
	struct {
		uint64_t fp;
		const struct shstk_opts *opts;
		struct shstk_info *info;
		unsigned int max;
	} begun;
	int pid;
	int tid;
	struct thread *next;
};

extern __thread struct thread *thread_self
	__attribute__((tls_model("initial-exec")));

/* The state of the calling thread; NULL if there is no memory for one. */
struct thread *thread_get_slow(void);

static inline struct thread *thread_get(void)
{
	struct thread *t = thread_self;

	return likely(t) ? t : thread_get_slow();
}

/*
 * A capture at @sp begins. Is it the outermost one? A signal may come between any
 * two of the stores: @busy_sp alone tells its handler whether it interrupts a
 * capture, and what is nested leaves @depth as it found it.
 */
static inline bool thread_enter(struct thread *t, uint64_t sp)
{
	bool outermost = !load_relaxed(&t->busy_sp);

	if (likely(outermost)) {
		store_relaxed(&t->busy_sp, sp | 1);	/* not 0 */
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		store_relaxed(&t->depth, 1);
	} else {
		store_relaxed(&t->depth, load_relaxed(&t->depth) + 1);
	}
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return outermost;
}

static inline void thread_leave(struct thread *t, bool outermost)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (likely(outermost)) {
		store_release(&t->depth, 0);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		store_relaxed(&t->busy_sp, 0);
	} else {
		store_release(&t->depth, load_relaxed(&t->depth) - 1);
	}
}

static inline __attribute__((always_inline)) void thread_count(struct thread *t, bool reused)
{
	store_relaxed(&t->captures, load_relaxed(&t->captures) + 1);
	if (unlikely(!reused))
		store_relaxed(&t->walks, load_relaxed(&t->walks) + 1);
}

/* Is any capture in progress, but for the calling thread's outermost one? */
bool thread_any_busy(void);

void thread_stats(struct shstk_stats *stats);

#endif
