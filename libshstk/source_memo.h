/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * source_memo.h - captures that repeat the thread's last trace: nothing is new.
 *
 * Such a capture is a chain of jumps from the public function on: it calls nothing, so that no
 * caller is pushed out of the processor's predictor of returns, and has all registers for the
 * comparison. What it may need again is in struct thread.call. The outermost capture of the
 * thread only: enter_outermost() was called. Where a word differs, near_capture() goes on.
 */
#ifndef SHSTK_SOURCE_MEMO_H
#define SHSTK_SOURCE_MEMO_H

#include "enter.h"
#include "modmap.h"
#include "rulecache.h"
#include "verify.h"

/*
 * Does a capture begin in the frame in which the last trace begins, with all that the
 * memo depends on unchanged? Then the frames behind it are to be compared.
 */
static inline __attribute__((always_inline)) no_sanitize bool
memo_begins_again(const struct thread *t, unsigned int max, uint64_t ra, uint64_t sp, uint64_t fp)
{
	const struct memo_again *a = &t->memo.again;

	return likely(a->sp == sp && a->pc == native_strip(ra) && !((a->fp ^ fp) & a->fp_mask) &&
		      a->gen == rulecache_gen() && modmap_loads_same() && (unsigned int)a->n < max);
}

/*
 * Compare them. memo_repeat_plain() does for any trace and any CPU. The others need AVX2, and
 * are there for one scenario: the same trace again and again ("fixed" of bench.rst), without
 * frame pointers. What each gains in it, against a library without it:
 *
 * memo_repeat_wide(), for any trace: 18 % fewer instructions at 32 frames, 27 % at 128.
 *
 * memo_repeat_long(), for long traces: packed, 16 % less time at 512 frames on an EPYC (Zen 3)
 * with 32 KiB of first-level cache. As it turns round each time, 23 % at 1024 frames on a Xeon
 * with 48 KiB, where a little more is touched than the cache holds; far beyond that, at 2000
 * frames, turning costs 6 %.
 */
int memo_repeat_long(uint64_t *pcs, struct thread *t);
int memo_repeat_wide(uint64_t *pcs, struct thread *t);
int memo_repeat_plain(uint64_t *pcs, struct thread *t);

/* The call in @t->call, for which memo_begins_again(). Also of a hook. */
static inline __attribute__((always_inline)) int memo_repeat(uint64_t *pcs, struct thread *t)
{
	if (unlikely(t->memo.again.n > MEMO_LONG))
		return memo_repeat_long(pcs, t);
	return verify_is_wide() ? memo_repeat_wide(pcs, t) : memo_repeat_plain(pcs, t);
}

#endif
