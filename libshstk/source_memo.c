// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * source_memo.c - captures that repeat the thread's last trace; see source_memo.h.
 */
#include "frame.h"
#include "source.h"
#include "source_memo.h"

/*
 * Nothing is new.
 */

/* A frame that is not ordinary is not for this file. */
static inline void tell_hook(struct shstk_hook *hook, uint64_t id)
{
	hook->id = id;
	hook->end = SHSTK_END_COMPLETE;
	hook->crossed = false;
}

/* What is seldom left to do after a capture of @n entries. */
static __attribute__((noinline)) int after(uint64_t *pcs, struct thread *t, int n)
{
	struct memo_side *s = &t->memo.side[t->memo.last];
	struct shstk_info *info = t->call.info;

	if (t->call.hook)
		tell_hook(t->call.hook, memo_id(s, s->first));
	leave_alone(t);
	source_retry(t);
	if (info)
		call_tell(info, 0, n, SHSTK_END_COMPLETE, pcs[n - 1], n - 1, 0);
	if (modmap_has_retired())
		modmap_reclaim();
	return n;
}

static inline __attribute__((always_inline)) no_sanitize int done(uint64_t *pcs, struct thread *t)
{
	int n = t->memo.again.n + 1;

	pcs[0] = t->memo.again.pc;
	t->memo.misses = 0;
	enter_count(t, true);
	if (unlikely((uintptr_t)t->call.info | (uintptr_t)t->call.hook) ||
	    unlikely(modmap_has_retired() || t->captures >= t->retry))
		return after(pcs, t, n);
	leave_alone(t);
	return n;
}

__attribute__((noinline)) no_sanitize int memo_repeat_long(uint64_t *pcs, struct thread *t)
{
	const struct memo_again *a = &t->memo.again;

	if (likely(memo_unchanged_again(&t->memo, pcs + 1) &&
		   memo_unchanged_fps(a->fps, a->fps_end)))
		return done(pcs, t);
	return source_after_memo(pcs, t);
}

__attribute__((noinline)) no_sanitize int memo_repeat_plain(uint64_t *pcs, struct thread *t)
{
	const struct memo_again *a = &t->memo.again;

	if (likely(!verify_pairs(a->anchor, a->slot, a->raw, pcs + 1, a->n) &&
		   memo_unchanged_fps(a->fps, a->fps_end)))
		return done(pcs, t);
	return source_after_memo(pcs, t);
}

__attribute__((noinline)) VERIFY_WIDE no_sanitize int memo_repeat_wide(uint64_t *pcs,
								       struct thread *t)
{
	const struct memo_again *a = &t->memo.again;

	if (likely(!verify_wide_inline(a->anchor, a->slot, a->raw, pcs + 1, a->n, false) &&
		   memo_unchanged_fps(a->fps, a->fps_end))) {
		memo_seen_again(&t->memo);
		return done(pcs, t);
	}
	return source_after_memo(pcs, t);
}

__attribute__((noinline)) VERIFY_WIDE no_sanitize int memo_repeat_packed(uint64_t *pcs,
									 struct thread *t)
{
	const struct memo_again *a = &t->memo.again;

	if (likely(!verify_up(t->memo.packed.base, t->memo.packed.up, a->raw, pcs + 1, a->n) &&
		   memo_unchanged_fps(a->fps, a->fps_end)))
		return done(pcs, t);
	return source_after_memo(pcs, t);
}

/*
 * A few frames are new.
 */

/**
 * struct near - the frame that comes next, on the way to one that the last trace has
 * @pc: where it goes on.
 * @raw: the word that was read from.
 * @slot: where that lies, from the end of the stack, as are addresses in frame.h.
 * @sp: its stack pointer, likewise.
 * @fp: its frame pointer.
 * @n: number of frames before it, which are new; 64 bits, as it is an index.
 * @j: innermost frame of the last trace that it may be.
 * @x: of the last trace, the frame pointer of @j, or the next one that a step uses.
 * @live: frame @j has that frame pointer.
 * @bad: outermost frame of the last trace that is known to differ.
 * @hi: the end of the stack.
 * @gen: see struct memo.
 * @mask: see struct rulecache.
 */
struct near {
	uint64_t pc, raw, slot, sp, fp;
	int64_t n;
	int j, x;
	bool live;
	int bad;
	uint64_t hi, gen, mask;
};

/**
 * struct new_frames - frames before they have a place in the trace
 * @raw: see struct memo_side. With room to copy four at a time.
 * @slot: see @raw.
 * @sp: see @raw.
 * @fps: values of the frame pointer that the steps out of them use.
 * @nfp: their number.
 * @cur: the one that is the frame pointer now; -1: it was not used so far.
 * @now: where it was restored from, and in front of which frame.
 */
struct new_frames {
	uint64_t raw[3 + MEMO_NEAR];
	int32_t slot[3 + MEMO_NEAR];
	int32_t sp[3 + MEMO_NEAR];
	struct memo_fp fps[MEMO_NEAR + 1];
	int nfp, cur;
	struct memo_fp now;
};

typedef uint64_t two_words __attribute__((vector_size(16), aligned(8), may_alias));
typedef int32_t four_ints __attribute__((vector_size(16), aligned(4), may_alias));

/* The frame pointer has the value @fp, and frames up to @use use it. */
static inline __attribute__((always_inline)) void use_fp(struct new_frames *f, uint64_t fp, int use)
{
	if (f->cur < 0) {
		f->cur = f->nfp++;
		f->fps[f->cur] = f->now;
		f->fps[f->cur].val = fp;
	}
	f->fps[f->cur].use = use;
}

/* Does the last trace have the frame that comes next, further out than what differs? */
static inline __attribute__((always_inline)) bool meets(struct near *w, const struct memo_side *old)
{
	while (old->sp[w->j] < (int32_t)w->sp)
		w->j++;
	return !((old->sp[w->j] ^ (int32_t)w->sp) | (native_strip(old->raw[w->j]) ^ w->pc)) &&
	       w->j > w->bad;
}

/*
 * It does. Does it have the same frame pointer there, if that matters, and is there room for
 * the new frames, before it and in the caller's array of @max?
 */
static inline __attribute__((always_inline)) bool
joins(struct near *w, const struct memo_side *old, const struct new_frames *f, unsigned int max)
{
	while (unlikely(old->fp[w->x].use < w->j))
		w->x++;
	w->live = old->fp[w->x].from <= w->j;
	return likely((unsigned int)(w->n + old->end - w->j) <= max && w->n + 3 <= w->j &&
		      f->nfp + w->live <= w->x && (!w->live || old->fp[w->x].val == w->fp));
}

/* The frame is new: note it, and leave it. False: it is not ordinary, or has no known rule. */
static inline __attribute__((always_inline)) no_sanitize bool
leave_new(struct near *w, struct new_frames *f, uint64_t *pcs)
{
	const struct rulecache_entry *e = rulecache_find(w->pc, w->gen, w->mask);
	struct frame_exit to;
	uint64_t rule;

	if (unlikely(!e))
		return false;
	rule = rulecache_read(e, w->pc | w->gen);
	if (!frame_leave_cached(rule, w->sp, w->fp - w->hi, &to))
		return false;
	if ((int64_t)rule < 0 && rule & RULE_FP)
		use_fp(f, w->fp, w->n);
	pcs[w->n] = w->pc;
	f->raw[3 + w->n] = w->raw;
	f->slot[3 + w->n] = (int32_t)(int64_t)w->slot;
	f->sp[3 + w->n++] = (int32_t)(int64_t)w->sp;
	if (rule & RULE_FP_SAVED) {
		f->now.addr = w->hi + to.fp;
		f->now.from = w->n;
		f->cur = -1;
		w->fp = frame_word(w->hi, to.fp);
	}
	w->slot = to.ra;
	w->raw = frame_word(w->hi, to.ra);
	w->pc = native_strip(w->raw);
	w->sp = to.cfa;
	return true;
}

/* Before frame @j of @s; below what was the first one there is room. */
static inline void put_new_frames(struct memo_side *s, int j, const struct new_frames *f, int n)
{
	for (; n > 0; n -= 4) {
		j -= 4;
		*(two_words *)&s->raw[j] = *(const two_words *)&f->raw[n - 1];
		*(two_words *)&s->raw[j + 2] = *(const two_words *)&f->raw[n + 1];
		*(four_ints *)&s->slot[j] = *(const four_ints *)&f->slot[n - 1];
		*(four_ints *)&s->sp[j] = *(const four_ints *)&f->sp[n - 1];
	}
}

/* The last trace is from now on the new frames, then frame @w->j and what is behind it. */
static inline __attribute__((always_inline)) void
put_in_front(struct memo *m, struct memo_side *s, const struct near *w, const struct new_frames *f)
{
	int first = w->j - w->n, x = w->x - f->nfp, i;

	m->again.sp = 0;
	memo_unhash(s, w->j);
	s->first = first;
	s->fp_first = x;
	s->nbarrier = 1;
	s->barrier[0] = first;
	put_new_frames(s, w->j, f, w->n);
	for (i = 0; i < f->nfp; i++) {
		s->fp[x + i] = f->fps[i];
		s->fp[x + i].from += first;
		s->fp[x + i].use += first;
	}
	s->raw[w->j] = w->raw;
	s->slot[w->j] = (int32_t)(int64_t)w->slot;
}

/* Frame @w->j was met, and all behind it stands. Returns the number of entries. */
static inline __attribute__((always_inline)) int join(const struct call *c, struct thread *t,
						      struct near *w, struct new_frames *f)
{
	struct memo_side *old = t->memo.now;
	const unsigned int rest = old->end - 1 - w->j;

	if (w->live) /* the same value, but behind new frames it has another origin */
		use_fp(f, w->fp, old->fp[w->x++].use - (w->j - w->n));
	c->pcs[w->n] = w->pc;
	t->reused = rest;
	if (w->n)
		put_in_front(&t->memo, old, w, f);
	else if (rest) /* next time it can be had faster */
		memo_set_again(&t->memo, old);
	if (c->hook)
		c->hook->id = memo_id(old, w->j - w->n);
	return w->n + 1 + rest;
}

/*
 * Most captures are like this: a few ordinary frames are new, then comes a frame that the
 * last trace has, too, and from there outwards nothing has changed. This does for them what
 * walk(), walk_reuse() and memo_join() do, without the cases that they do not need, in half the
 * instructions: design.rst, "The software shadow stack".
 *
 * A frame can be equal to one of the last trace although something further out differs: its
 * function makes the same call each time, but was itself called from elsewhere. Then the
 * walk goes on, and only frames further out than what is known to differ are compared again.
 *
 * Return: entries written; -1: it is another case, and nothing was changed.
 */
static __attribute__((noinline)) no_sanitize int short_cut(const struct call *c, struct thread *t)
{
	const uint64_t hi = t->native.hi;
	const int room = min(c->max, (unsigned int)MEMO_NEAR);
	const struct memo_side *old = t->memo.now;
	struct new_frames new;
	struct near w = {
		.pc = native_strip(c->ra),
		.raw = c->ra,
		.slot = c->sp - hi,
		.sp = c->sp - hi,
		.fp = c->fp,
		.j = old->first,
		.x = old->fp_first,
		.bad = -1,
		.hi = hi,
		.gen = t->memo.gen,
		.mask = load_relaxed(&rulecache.mask),
	};

	if (unlikely(!range_has(&t->native, c->sp) || w.sp & 7))
		return -1;
	new.nfp = 0;
	new.cur = -1;
	new.now = (struct memo_fp){ .addr = 0 };
	for (;;) {
		if (unlikely(meets(&w, old))) {
			if (!joins(&w, old, &new, c->max))
				return -1;
			if (likely(memo_unchanged(&t->memo, old, w.j, w.x + w.live,
						  c->pcs + w.n + 1)))
				break;
			w.bad = memo_last_bad(old, w.j, MEMO_NEAR - w.n);
			if (w.bad < 0)
				return -1;
		}
		if (unlikely(w.n == room))
			return -1;
		if (!leave_new(&w, &new, c->pcs))
			return -1;
	}
	return join(c, t, &w, &new);
}

int memo_capture_near(const struct call *c, struct thread *t)
{
	const struct memo *m = &t->memo;
	int n = -1;

	if (!m->now || !m->near || m->gen != rulecache_gen() || modmap_loads_changed()) {
		leave_alone(t);
		return 0;
	}
	enter_modules(t);
	n = short_cut(c, t);
	if (likely(n > 0)) {
		t->memo.misses = 0;
		if (c->hook)
			tell_hook(c->hook, c->hook->id);
		enter_count(t, t->reused);
		if (unlikely(c->info != NULL))
			call_tell(c->info, 0, n, SHSTK_END_COMPLETE, c->pcs[n - 1], t->reused, 0);
	}
	leave(t, true);
	if (unlikely(modmap_has_retired()))
		modmap_reclaim();
	return max(n, 0);
}
