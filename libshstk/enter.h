/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * enter.h - enter a capture and leave it: how a thread's state stays whole although a
 * signal may come between any two instructions, and its handler may capture too.
 *
 * Two words of struct thread say that a capture is in progress:
 *
 *	busy_sp		stack address of the outermost one, 0 if there is none
 *	depth		captures that may look at modules; other threads read it
 *
 * The thread and its handlers alone write them, and a handler runs from its start to its
 * end between two instructions of what it interrupts. From that follows:
 *
 * 1. The outermost capture sets @busy_sp before it touches anything else in the state,
 *    and clears it when it has done all the rest. So a handler that finds 0 there finds
 *    a whole state, and may do with it what it likes: the interrupted code has not begun,
 *    or has ended.
 * 2. A handler that finds another value is nested. It leaves the memo and struct thread.call
 *    alone, and leaves @busy_sp and @depth as it found them. So the
 *    interrupted capture, wherever it is, does not notice.
 * 3. Memory of modules that are gone is unmapped when no other thread's @depth is more
 *    than 0, nor the thread's own more than 1 (thread_any_busy()). So whoever looks at
 *    modules has raised it before, and lowers it with release order after that. The
 *    barrier between raising it and the first look is left out here: the thread that
 *    unmaps supplies it by membarrier(2).
 * 4. The thread's own captures interrupt each other like calls: the nested one has lowered
 *    @depth to what it was before the outer one looks at it again. So a capture that is
 *    known to be the outermost sets @depth to 1 and to 0, without reading it, and one that
 *    looks at no module leaves it 0.
 * 5. A handler may leave by longjmp(), and the captures it abandons never clear
 *    @busy_sp. Their frames are gone: the next capture from further up the same stack sees
 *    that by its stack pointer (enter_after_jump()). What they may have left half done is
 *    dropped. Until there is such a capture all others are treated as nested, which is
 *    slower, and right.
 *
 * Only the compiler could change the order of these stores as a handler of the same thread
 * sees them: signal fences are enough.
 */
#ifndef SHSTK_ENTER_H
#define SHSTK_ENTER_H

#include "thread.h"

/*
 * The call goes on by jumps: see struct thread.call. Not as one struct: most of it is in
 * registers.
 */
static inline __attribute__((always_inline)) void
keep_call(struct thread *t, uint64_t *pcs, unsigned int max, const struct shstk_opts *opts,
	  struct shstk_info *info, uint64_t ra, uint64_t sp, uint64_t fp)
{
	t->call.ra = ra;
	t->call.sp = sp;
	t->call.fp = fp;
	t->call.pcs = pcs;
	t->call.max = max;
	t->call.opts = opts;
	t->call.info = info;
	t->call.hook = NULL;
}

/* Is no capture of the thread in progress, so that the next one is the outermost? */
static inline bool enter_is_outermost(const struct thread *t)
{
	return !load_relaxed(&t->busy_sp);
}

/* The outermost capture begins, where enter_is_outermost() said so. @sp is not 0. */
static inline void enter_outermost(struct thread *t, uint64_t sp)
{
	store_relaxed(&t->busy_sp, sp);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* It is over. */
static inline __attribute__((always_inline)) void leave_outermost(struct thread *t)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	store_relaxed(&t->busy_sp, 0);
}

/* It is going to look at modules, which are to stay. */
static inline void enter_modules(struct thread *t)
{
	store_relaxed(&t->depth, 1);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void leave_modules(struct thread *t)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	store_release(&t->depth, 0);
}

/* Any capture begins, that looks at modules. Is it the outermost one? */
static inline bool enter(struct thread *t, uint64_t sp)
{
	bool outermost = enter_is_outermost(t);

	if (likely(outermost)) {
		/* An interrupted @sp may be 0, which would mean: no capture in progress. */
		enter_outermost(t, sp | 1);
		enter_modules(t);
	} else {
		store_relaxed(&t->depth, load_relaxed(&t->depth) + 1);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	}
	return outermost;
}

static inline void leave(struct thread *t, bool outermost)
{
	if (likely(outermost)) {
		leave_modules(t);
		leave_outermost(t);
	} else {
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		store_release(&t->depth, load_relaxed(&t->depth) - 1);
	}
}

/* Before enter(): was the capture that seems to be in progress left by longjmp()? */
static inline void enter_after_jump(struct thread *t, uint64_t sp)
{
	uint64_t busy = load_relaxed(&t->busy_sp);

	if (likely(!busy) || !t->native_known || sp <= busy || !range_has(&t->native, sp) ||
	    !range_has(&t->native, busy))
		return;
	store_relaxed(&t->busy_sp, 0);
	memo_clear(&t->memo);
}

/* The outermost capture counts. @reused: it took frames from the one before. */
static inline __attribute__((always_inline)) void enter_count(struct thread *t, bool reused)
{
	store_relaxed(&t->captures, load_relaxed(&t->captures) + 1);
	if (unlikely(!reused))
		store_relaxed(&t->walks, load_relaxed(&t->walks) + 1);
}

#endif
