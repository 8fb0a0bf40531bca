// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * walk_ordinary.c - the fast loop over ordinary frames; see walk.h.
 *
 * The loop is compiled twice, with the memo and without. All helpers are inlined, so that
 * values that change from frame to frame stay in registers.
 */
#include "frame.h"
#include "rulecache.h"
#include "walk.h"

#define STRIDE static inline __attribute__((always_inline)) no_sanitize

/**
 * struct stride - the frame that comes next
 * @pc: its program counter.
 * @raw: the word that @pc was read from.
 * @slot: the place of that word, as a distance from the end of the stack: see frame.h.
 * @sp: its stack pointer, as a distance from the end of the stack.
 * @fp: its frame pointer, as an address.
 * @entry: the entry of the trail that may have its rule.
 * @inner: the entry of the frame before; NULL if this is the first frame.
 * @i: its number among the fresh frames of the memo.
 * @look: the number of the next frame that is compared with the last trace.
 */
struct stride {
	uint64_t pc, raw, slot, sp, fp;
	struct rulecache_entry *entry, *inner;
	int i, look;
};

/*
 * Tells whether the loop has to stop for the memo: the frame may be one of the last trace, or
 * there is no room for more frames.
 *
 * This branch is mispredicted when the walk meets the last trace, so it is tested less often
 * further out; at most a quarter more frames are walked than necessary.
 */
STRIDE bool is_for_memo(struct stride *s, struct memo_walk *w)
{
	const struct memo_side *old = w->old;
	int32_t at = (int32_t)(int64_t)s->sp;

	if (s->i < s->look)
		return false;
	while (old->sp[w->met] < at)
		w->met++;
	if (unlikely(!((old->sp[w->met] ^ at) | (native_strip(old->raw[w->met]) ^ s->pc))))
		return true;
	s->look = min(s->i + 1 + (s->i - MEMO_START) / 4, MEMO_ROOM - 1);
	return s->i == MEMO_ROOM - 1;
}

/*
 * Finds the entry with the frame's rule: the one that the trail leads to, or else the one in the
 * cache. Returns false if there is none.
 */
STRIDE bool find_entry(struct stride *s, uint64_t gen, uint64_t mask, bool update)
{
	if (!NATIVE_RA_FIXED)
		s->entry = rulecache_find(s->pc, gen, mask);
	else if (unlikely(load_acquire(&s->entry->key) != (s->pc | gen)))
		s->entry = rulecache_follow(s->inner, s->pc, gen, mask, update);
	return likely(s->entry);
}

/* Adds the frame, which is left by @rule, to the memo. */
STRIDE void note(struct stride *s, struct memo_walk *w, uint64_t rule)
{
	if (frame_cached_uses_fp(rule))
		memo_use_fp(w, s->i, s->fp);
	w->fresh->raw[s->i] = s->raw;
	w->fresh->slot[s->i] = (int32_t)(int64_t)s->slot;
	w->fresh->sp[s->i] = (int32_t)(int64_t)s->sp;
	s->i++;
}

/* Moves to the caller's frame. */
STRIDE void leave_by(struct stride *s, uint64_t rule, const struct frame_exit *x, uint64_t hi)
{
	if (NATIVE_RA_FIXED) {
		s->inner = s->entry;
		s->entry = rulecache_trail(rule);
	}
	if (rule & RULE_FP_SAVED)
		s->fp = frame_word(hi, x->fp);
	s->slot = x->ra;
	s->raw = frame_word(hi, x->ra);
	s->pc = native_strip(s->raw);
	s->sp = x->cfa;
}

STRIDE void stride(struct capture *c, const bool memo)
{
	const uint64_t mask = load_relaxed(&rulecache.mask), gen = c->gen;
	const bool update = !(load_relaxed(&c->calling.t->captures) & 31);
	uint64_t *out = c->pcs + c->n, *const full = c->pcs + c->max;
	const uint64_t hi = c->calling.stack.hi;
	struct stride s = {
		.pc = c->pc,
		.raw = c->raw,
		.slot = c->slot - hi,
		.sp = c->sp - hi,
		.fp = c->fp,
		.entry = rulecache.trail,
	};
	struct memo_walk w;
	unsigned int n;

	if (unlikely(s.sp & 7))
		return;
	if (memo) {
		w = c->w;
		s.i = s.look = w.fresh->end;
	}
	while (likely(out != full) && !(memo && is_for_memo(&s, &w))) {
		struct frame_exit x;
		uint64_t rule;

		if (!find_entry(&s, gen, mask, update))
			break;
		rule = rulecache_read(s.entry, s.pc | gen);
		if (!frame_leave_cached(rule, s.sp, s.fp - hi, &x))
			break;
		if (memo)
			note(&s, &w, rule);
		*out++ = s.pc;
		leave_by(&s, rule, &x, hi);
		if (memo && rule & RULE_FP_SAVED)
			memo_restored_fp(&w, s.i, hi + x.fp);
	}
	n = out - c->pcs;
	if (unlikely(c->marks != NULL))
		memset(c->marks + c->n, 0, n - c->n);
	c->n = n;
	c->pc = s.pc;
	c->sp = hi + s.sp;
	c->fp = s.fp;
	if (memo) { /* only the memo uses @slot and @raw */
		c->slot = hi + s.slot;
		c->raw = s.raw;
		w.fresh->end = s.i;
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
