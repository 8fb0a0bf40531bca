// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * source_memo.c - captures that repeat the thread's last trace; see source_memo.h.
 */
#include "source_memo.h"
#include "source_near.h"

/* Tells the caller or the hook of @t->call how a capture of @n entries went. Returns @n. */
static __attribute__((noinline)) int after(uint64_t *pcs, struct thread *t, int n)
{
	struct memo_side *s = &t->memo.side[t->memo.last];
	const struct memo_again *a = &t->memo.again;
	const bool cut = a->cut != MEMO_NO_SIZE;
	const uint64_t end_pc = cut ? native_strip(a->beyond_raw) : pcs[n - 1];
	const int end = cut ? SHSTK_END_CAPACITY : SHSTK_END_COMPLETE;
	struct shstk_info *info = t->call.info;

	if (t->call.hook)
		call_tell_hook(t->call.hook, cut ? shstk_trace_id(pcs, n) : memo_id(s, s->first),
			       end, false);
	leave_outermost(t);
	if (info)
		call_tell(info, 0, n, end, end_pc, n - 1, 0);
	return n;
}

/*
 * Ends a capture whose frames were all unchanged. Returns the number of entries. It has looked at no
 * module, and leaves those that are gone to captures that do.
 */
static inline __attribute__((always_inline)) no_sanitize int done(uint64_t *pcs, struct thread *t)
{
	int n = t->memo.again.n + 1;

	pcs[0] = t->memo.again.pc;
	t->memo.misses = 0;
	enter_count(t, true);
	if (unlikely((uintptr_t)t->call.info | (uintptr_t)t->call.hook))
		return after(pcs, t, n);
	leave_outermost(t);
	return n;
}

/* Does what done() does for frames that may be packed next time. */
static __attribute__((noinline)) int count(uint64_t *pcs, struct thread *t)
{
	memo_count_again(&t->memo);
	return done(pcs, t);
}

/* Makes a capture for which a word has changed: no other one is to compare the same words. */
static __attribute__((noinline)) int changed(struct thread *t)
{
	t->memo.again.sp = 0;
	return near_capture(t);
}

/*
 * The function is aligned: with the loop over frame pointers across the end of a cache line, 128 frames
 * take 109 ns instead of 83 on an EPYC (Zen 4) without AVX2.
 */
__attribute__((noinline, aligned(64))) no_sanitize int memo_repeat_any(uint64_t *pcs,
								       struct thread *t)
{
	const struct memo_again *a = &t->memo.again;
	bool same;

	if (verify_is_wide())
		same = memo_unchanged_again(&t->memo, pcs + 1);
	else
		same = !verify_pairs(a->anchor, a->slot, a->raw, pcs + 1, a->n);
	if (likely(same && memo_unchanged_fps(a->fps, a->fps_end)))
		return done(pcs, t);
	return changed(t);
}

__attribute__((noinline)) VERIFY_WIDE no_sanitize int memo_repeat_short(uint64_t *pcs,
									struct thread *t)
{
	const struct memo_again *a = &t->memo.again;

	if (unlikely(verify_wide_inline(a->anchor, a->slot, a->raw, pcs + 1, a->n, false) ||
		     !memo_unchanged_fps(a->fps, a->fps_end)))
		return changed(t);
	if (unlikely(a->way == MEMO_SHORT_FPS))
		return count(pcs, t);
	return done(pcs, t);
}

__attribute__((noinline)) VERIFY_WIDE no_sanitize int memo_repeat_records(uint64_t *pcs,
									  struct thread *t)
{
	const struct memo_again *a = &t->memo.again;

	t->memo.backwards ^= a->n > MEMO_LONG;
	if (likely(!verify_records(a->anchor, a->slot, a->raw, pcs + 1, a->n, &t->memo.records,
				   t->memo.backwards) &&
		   memo_unchanged_fps(a->fps, a->fps_end)))
		return done(pcs, t);
	return changed(t);
}

__attribute__((noinline)) VERIFY_WIDE no_sanitize int memo_repeat_fours(uint64_t *pcs,
									struct thread *t)
{
	const struct memo_again *a = &t->memo.again;

	/* With @pcs loaded again the loop needs no register that has to be saved. */
	if (likely(!verify_fours(&t->memo.fours, pcs + 1, a->n) &&
		   memo_unchanged_fps(a->fps, a->fps_end)))
		return done(t->call.pcs, t);
	return changed(t);
}

__attribute__((noinline)) no_sanitize int memo_repeat_cut(struct thread *t)
{
	const struct memo_again *a = &t->memo.again;
	const struct call *c = &t->call;

	if (likely(a->cut != c->max) || !memo_begins_here(t, c->ra, c->sp, c->fp) ||
	    *a->beyond != a->beyond_raw)
		return near_full(t);
	return memo_repeat(c->pcs, t);
}
