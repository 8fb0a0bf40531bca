/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * enter.h - enters and leaves a capture. A thread's state stays consistent although a signal may
 * come between any two instructions, and the signal handler may capture, too.
 *
 * Two words of struct thread say that a capture is in progress:
 *
 *	busy_sp		stack address of the outermost capture, 0 if there is none
 *	depth		number of captures that may look at modules; other threads read it
 *
 * Only the thread and its handlers write these words, and a handler runs from start to end between
 * two instructions of the code that it interrupts. That gives five rules:
 *
 * 1. The outermost capture sets @busy_sp before it touches anything else in the state, and clears
 * it after everything else. So a handler that finds 0 there finds a consistent state and may change
 * it: the interrupted capture has not begun, or has ended.
 *
 * 2. A handler that finds another value is nested. It touches neither the memo nor struct
 * thread.call, and leaves @busy_sp and @depth as it found them. So the interrupted capture does not
 * notice the handler, wherever it is.
 *
 * 3. The memory of modules that are gone is unmapped when no other thread's @depth is more than 0,
 * nor the thread's own more than 1 (thread_any_busy()). So a capture that looks at modules raises
 * @depth before that, and lowers it with release order after that. The barrier between raising
 * @depth and the first look is left out here: the thread that unmaps supplies it by membarrier(2).
 *
 * 4. Captures of one thread interrupt each other like calls: the nested one has lowered @depth to
 * its former value before the outer one looks at it again. So a capture that is known to be the
 * outermost one sets @depth to 1 and to 0 without reading it, and a capture that looks at no module
 * leaves it 0.
 *
 * 5. A handler may leave by longjmp(), and the captures it abandons never clear @busy_sp. Their
 * frames are gone: the next capture from further out on the same stack sees that by its stack
 * pointer (enter_after_jump()) and drops what they may have left incomplete. Until then all
 * captures are treated as nested, which is slower, but correct.
 *
 * A handler of the same thread could only see these stores in another order if the compiler
 * reorders them, so signal fences are enough.
 */
#ifndef SHSTK_ENTER_H
#define SHSTK_ENTER_H

#include "thread.h"

/*
 * Keeps the arguments of a call in the thread's state, because the functions that serve the call
 * jump to each other; see struct thread.call. They are not passed as a struct, because most of them
 * are in registers.
 */
static inline __attribute__((always_inline)) void
keep_call(struct thread *t, uint64_t *pcs, unsigned int max, const struct shstk_opts *opts,
	  struct shstk_info *info, struct shstk_hook *hook, uint64_t ra, uint64_t sp, uint64_t fp)
{
	t->call.ra = ra;
	t->call.sp = sp;
	t->call.fp = fp;
	t->call.pcs = pcs;
	t->call.max = max;
	t->call.opts = opts;
	t->call.info = info;
	t->call.hook = hook;
	t->call.keep = NULL;
}

/*
 * Returns true if no capture of the thread is in progress, so that the next one is the outermost.
 */
static inline bool enter_is_outermost(const struct thread *t)
{
	return !load_relaxed(&t->busy_sp);
}

/* Begins the outermost capture. enter_is_outermost() must have returned true. @sp must not be 0. */
static inline void enter_outermost(struct thread *t, uint64_t sp)
{
	store_relaxed(&t->busy_sp, sp);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Ends the outermost capture. */
static inline __attribute__((always_inline)) void leave_outermost(struct thread *t)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	store_relaxed(&t->busy_sp, 0);
}

/*
 * Keeps modules from being unmapped from now on. To be called in the outermost capture before it
 * looks at modules.
 */
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

/* Begins any capture that looks at modules. Returns true if it is the outermost one. */
static inline bool enter(struct thread *t, uint64_t sp)
{
	bool outermost = enter_is_outermost(t);

	if (likely(outermost)) {
		/*
		 * An interrupted @sp may be 0, but a @busy_sp of 0 means that no capture is in
		 * progress.
		 */
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

/*
 * Finds out, before enter(), whether the capture that seems to be in progress was left by
 * longjmp(). If so, ends it and forgets the memo.
 */
static inline void enter_after_jump(struct thread *t, uint64_t sp)
{
	uint64_t busy = load_relaxed(&t->busy_sp);

	if (likely(!busy) || !t->native_known || sp <= busy || !range_has(&t->native, sp) ||
	    !range_has(&t->native, busy))
		return;
	/*
	 * From here on it is this capture that has the state: a handler that comes now is nested, and neither
	 * finds the memo as the other one left it nor changes it before all of it is forgotten.
	 */
	store_relaxed(&t->busy_sp, sp | 1);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	memo_clear(&t->memo);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	store_relaxed(&t->busy_sp, 0);
}

/* Counts an outermost capture. @reused: it took frames from the capture before it. */
static inline __attribute__((always_inline)) void enter_count(struct thread *t, bool reused)
{
	store_relaxed(&t->captures, load_relaxed(&t->captures) + 1);
	if (unlikely(!reused))
		store_relaxed(&t->walks, load_relaxed(&t->walks) + 1);
}

#endif
