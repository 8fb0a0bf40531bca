/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * source_memo.h - captures that repeat the thread's last trace without a change.
 *
 * Such a capture is a chain of jumps from the public function on. It calls nothing, so it pushes
 * no caller out of the processor's return predictor, and it has all registers for the comparison.
 * Its arguments are kept in struct thread.call. Only the outermost capture of the thread comes
 * here, after enter_outermost(). Where a word differs, near_capture() continues.
 */
#ifndef SHSTK_SOURCE_MEMO_H
#define SHSTK_SOURCE_MEMO_H

#include "enter.h"
#include "modmap.h"
#include "rulecache.h"
#include "verify.h"

/*
 * Tells whether a capture begins in the frame in which the last trace begins, and everything that
 * the memo depends on is unchanged.
 */
static inline __attribute__((always_inline)) no_sanitize bool
memo_begins_here(const struct thread *t, uint64_t ra, uint64_t sp, uint64_t fp)
{
	const struct memo_again *a = &t->memo.again;

	return likely(a->sp == sp && a->pc == native_strip(ra) && !((a->fp ^ fp) & a->fp_mask) &&
		      modmap_state_is(a->state, rulecache_number()));
}

/*
 * Tells in addition whether an array of @max entries has room for the whole last trace. Then
 * memo_repeat() can compare the frames behind the first one.
 */
static inline __attribute__((always_inline)) no_sanitize bool
memo_begins_again(const struct thread *t, unsigned int max, uint64_t ra, uint64_t sp, uint64_t fp)
{
	return memo_begins_here(t, ra, sp, fp) && likely(t->memo.again.least <= max);
}

/*
 * These functions compare the frames; struct memo_again says which of them does. memo_repeat_any()
 * works for any trace on any CPU.
 * memo_repeat_short() has the loop in itself, and calls nothing: it is for traces of up to MEMO_LONG
 * frames, on CPUs that verify_wide() works on, which are all but x86 CPUs without AVX2. There
 * memo_repeat_any() calls nothing either: calls cost the program mispredicted returns, at 128 frames
 * 45 ns ("once" of bench.rst). What the same trace again and again takes ("fixed" of bench.rst,
 * without frame pointers, on an EPYC (Zen 4) with 32 KiB of first-level cache):
 *
 * without memo_repeat_short(), 16.3, 21.5 and 43.3 ns instead of 13.2, 18.3 and 38.9 at 8, 32 and 128
 * frames, and 283, 376 and 810 instructions instead of 223, 316 and 688;
 *
 * with memo_repeat_short() for long traces, too, 348 ns instead of 179 at 512 frames. Of what
 * memo_repeat_any() saves there, 30 ns come from packed words, and the rest from directions that
 * alternate. On a Xeon with 48 KiB these save 23 % at 1024 frames, where the trace is a little larger
 * than the cache; far beyond that, at 2000 frames, they cost 6 %.
 *
 * memo_repeat_records() calls nothing either. It is for traces of any length with MEMO_RECORDS or more
 * neighbouring frame records, on x86 CPUs with AVX2: one load reads a return address and the frame
 * pointer below it. With frame pointers ("fixed", on an EPYC (Zen 4)) it takes 15.0, 20.1, 40 and 199
 * ns at 8, 32, 128 and 512 frames instead of 17.0, 31.7, 92 and 742, and 301, 412, 856 and 2631
 * instructions instead of 279, 540, 1584 and 5834; "once" at 512, 454 ns instead of 2964.
 *
 * memo_repeat_fours() is for such traces of up to MEMO_FOURS frames. It compares all frames in one loop,
 * also those without a record. It takes 190 and 316 instructions at 8 and 32 frames instead of 301 and 412,
 * on an EPYC (Zen 4) 11.7 and 18.0 ns. Addresses in place of distances of 16 bits take an instruction less
 * for four frames and three loads more, and 19.2 ns at 32.
 *
 * What they are worth to real programs, all allocations of which are recorded (`shstk record
 * --heap`), is little, because allocations of one place seldom follow each other: of the captures
 * that had a trace to compare with, memo_repeat_short() was tried in 11 % in cc1plus (15 thousand),
 * 17 % in python3's json with 480 nested lists, and 0.2 % in sqlite3; memo_repeat_any() in one of 89
 * thousand in that json, and in none of the others.
 */
int memo_repeat_short(uint64_t *pcs, struct thread *t);
int memo_repeat_fours(uint64_t *pcs, struct thread *t);
int memo_repeat_records(uint64_t *pcs, struct thread *t);
int memo_repeat_any(uint64_t *pcs, struct thread *t);

/*
 * Makes the capture in @t->call, of a public function or a hook, for which memo_begins_again()
 * was true. Returns the number of entries.
 */
static inline __attribute__((always_inline)) int memo_repeat(uint64_t *pcs, struct thread *t)
{
	const enum memo_way way = t->memo.again.way;

	if (likely(way <= MEMO_SHORT_FPS))
		return memo_repeat_short(pcs, t);
	if (way == MEMO_IN_FOURS)
		return memo_repeat_fours(pcs, t);
	return way == MEMO_RECORDED ? memo_repeat_records(pcs, t) : memo_repeat_any(pcs, t);
}

/*
 * Makes the capture in @t->call after one that has filled its array. If both begin in the same frame, with
 * arrays of one size, the frames are compared as for a whole trace, and first the word that leads to
 * the next frame: that there is one is part of the answer. In any other case near_full() makes the
 * capture. Returns the number of entries.
 */
int memo_repeat_cut(struct thread *t);

#endif
