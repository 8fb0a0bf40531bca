/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * capture.h - the two halves of a capture: capture.c, which can do everything, and
 * marked.c, which is fast where there are markers.
 */
#ifndef SHSTK_CAPTURE_H
#define SHSTK_CAPTURE_H

#include "thread.h"

#define ALL_SOURCES (SHSTK_USE_HARDWARE | SHSTK_USE_MARKER | \
		     SHSTK_USE_MEMO | SHSTK_USE_WALK)

/* Does a request want anything but all entries, by way of @source? */
static inline bool is_simple(const uint64_t *pcs, unsigned int max,
			     const struct shstk_opts *opts,
			     const struct shstk_info *info, uint32_t source)
{
	if (!pcs || max > INT32_MAX || (info && info->size < 8))
		return false;
	if (!opts)
		return true;
	return opts->size == sizeof(*opts) && !opts->pad && !opts->skip &&
	       !opts->marks && !(opts->sources & ~ALL_SOURCES) &&
	       (!opts->sources || opts->sources & source);
}

/* @source: 0 is the memo or the walk, by @reused. */
void fill_info(struct shstk_info *to, int source, int n, int end, uint64_t end_pc,
	       unsigned int reused, unsigned int guessed);

/*
 * A capture of a thread that has markers, or may get some. It was begun by
 * marked_begin(); @fp and what is in memory are registers of the public function's
 * caller. Where that function can, it jumps here: then the processor's predictor of
 * returns forgets as few callers as with any other function.
 */
int marked_capture(uint64_t *pcs, unsigned int max, const struct shstk_opts *opts,
		   struct shstk_info *info, struct thread *t, uint64_t fp);
/*
 * The same, where it may be that of the last time: @again_sp and @again_ra of struct
 * markers are right.
 */
int marked_again(uint64_t *pcs, unsigned int max, const struct shstk_opts *opts,
		 struct shstk_info *info, struct thread *t, uint64_t fp);
/* In any other way, for a capture that was begun so. */
int unmarked_capture(uint64_t *pcs, unsigned int max, const struct shstk_opts *opts,
		     struct shstk_info *info, struct thread *t, uint64_t fp);

/*
 * The identity of the trace, and the number of its entries. -1: it does not come to
 * a marker. The capture was begun.
 */
int marked_identity(struct thread *t, uint64_t fp, uint64_t *id);

/*
 * Interrupts none. @sp is not 0, and a multiple of 4; @busy_sp, and @ra of struct
 * markers, hold what need not be handed on.
 */
static inline void marked_begin(struct thread *t, uint64_t sp)
{
	store_relaxed(&t->busy_sp, sp + 1);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* The counterpart; @reused: it took frames from the one before. */
static inline __attribute__((always_inline)) void marked_end(struct thread *t, bool reused)
{
	thread_count(t, reused);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	store_relaxed(&t->busy_sp, 0);
}

#endif
