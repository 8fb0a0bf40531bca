// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * walk_ordinary.c - the fast loop over ordinary frames; see walk.h.
 */
#include "frame.h"
#include "rulecache.h"
#include "walk.h"

static inline __attribute__((always_inline)) no_sanitize void stride(struct capture *c,
								     const bool memo)
{
	const uint64_t mask = load_relaxed(&rulecache.mask), gen = c->gen;
	const uint64_t hi = c->own.stack.hi;
	const struct rulecache_entry *e = rulecache.trail;
	struct rulecache_entry *inner = NULL;
	const bool update = !(load_relaxed(&c->own.t->captures) & 31);
	uint64_t *out = c->pcs + c->n, *const full = c->pcs + c->max;
	uint64_t pc = c->pc, sp = c->sp - hi, fp = c->fp;
	uint64_t slot = c->slot - hi, raw = c->raw;
	struct memo_walk w;
	int i = 0, look = 0;
	unsigned int n;

	if (unlikely(sp & 7))
		return;
	if (memo) {
		w = c->w;
		i = w.fresh->end;
		look = i;
	}
	for (;;) {
		struct frame_exit x;
		uint64_t rule;

		if (unlikely(out == full))
			break;
		/*
		 * Where the last trace comes in can't be predicted, so looking
		 * is dear. Far out it is done less often; at most a quarter
		 * more is walked than had to be.
		 */
		if (memo && i >= look) {
			const struct memo_side *old = w.old;
			int32_t at = (int32_t)(int64_t)sp;

			while (old->sp[w.j] < at)
				w.j++;
			if (unlikely(!((old->sp[w.j] ^ at) | (native_strip(old->raw[w.j]) ^ pc))))
				break;
			look = min(i + 1 + (i - MEMO_START) / 4, MEMO_ROOM - 1);
			if (unlikely(i == MEMO_ROOM - 1))
				break;
		}
		if (!NATIVE_RA_FIXED)
			e = rulecache_find(pc, gen, mask);
		else if (unlikely(load_acquire(&e->key) != (pc | gen)))
			e = rulecache_follow(inner, pc, gen, mask, update);
		if (unlikely(!e))
			break;
		rule = rulecache_read(e, pc | gen);
		if (!frame_leave_cached(rule, sp, fp - hi, &x))
			break;
		if (memo && (int64_t)rule < 0 && rule & RULE_FP)
			memo_use_fp(&w, i, fp);
		if (NATIVE_RA_FIXED) {
			inner = (struct rulecache_entry *)e;
			e = rulecache_trail(rule);
		}
		*out++ = pc;
		if (memo) {
			w.fresh->raw[i] = raw;
			w.fresh->slot[i] = (int32_t)(int64_t)slot;
			w.fresh->sp[i] = (int32_t)(int64_t)sp;
			i++;
		}
		if (rule & RULE_FP_SAVED) {
			fp = frame_word(hi, x.fp);
			if (memo)
				memo_restored_fp(&w, i, hi + x.fp);
		}
		slot = x.ra;
		raw = frame_word(hi, slot);
		pc = native_strip(raw);
		sp = x.cfa;
	}
	n = out - c->pcs;
	if (unlikely(c->marks != NULL))
		memset(c->marks + c->n, 0, n - c->n);
	c->n = n;
	c->pc = pc;
	c->sp = hi + sp;
	c->fp = fp;
	if (memo) { /* otherwise nobody wants to know */
		c->slot = hi + slot;
		c->raw = raw;
		w.fresh->end = i;
		c->w = w;
	}
}

__attribute__((noinline)) no_sanitize void walk_ordinary_memo(struct capture *c)
{
	stride(c, true);
}

__attribute__((noinline)) no_sanitize void walk_ordinary_plain(struct capture *c)
{
	stride(c, false);
}
