// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * source_near.c - captures that meet the thread's last trace after a few new frames; see
 * source_near.h.
 */
#include "capture_general.h"
#include "frame.h"
#include "modmap.h"
#include "source_memo.h"
#include "source_near.h"

/**
 * struct new_frames - new frames that do not have a place in the trace yet
 * @raw: the word that each frame's pc was read from, as in struct memo_side. The first frame is
 *	element 3, so that four elements can be copied at a time.
 * @slot: the address of that word, as in struct memo_side; the first frame is element 3.
 * @sp: the frame's stack pointer, as in struct memo_side; the first frame is element 3.
 * @fps: the values of the frame pointer that the steps out of the frames use.
 * @nfp: number of elements of @fps.
 * @cur: the element of @fps that is the frame pointer now; -1 if no step has used it so far.
 * @now: where the frame pointer was restored from, and from which frame on it holds.
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

/* Notes that the frame pointer has the value @fp, and that frames up to @use use it. */
static inline __attribute__((always_inline)) void use_fp(struct new_frames *f, uint64_t fp, int use)
{
	if (f->cur < 0) {
		f->cur = f->nfp++;
		f->fps[f->cur] = f->now;
		f->fps[f->cur].val = fp;
	}
	f->fps[f->cur].use = use;
}

/* Puts the new frames in front of frame @j of @s. There is room in front of the first frame. */
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

/*
 * Makes the trace in @s consist of @n new frames, frame @j and the frames behind it. Its frame
 * pointers are the new ones and those of @s from @x on.
 */
static inline __attribute__((always_inline)) void
put_in_front(struct memo *m, struct memo_side *s, int j, int x, const struct new_frames *f, int n)
{
	int i;

	m->again.sp = 0;
	memo_unhash(s, j);
	s->first = j - n;
	s->fp_first = x - f->nfp;
	s->nbarrier = 1;
	s->barrier[0] = j - n;
	put_new_frames(s, j, f, n);
	for (i = 0; i < f->nfp; i++) {
		s->fp[x - f->nfp + i] = f->fps[i];
		s->fp[x - f->nfp + i].from += j - n;
		s->fp[x - f->nfp + i].use += j - n;
	}
}

/*
 * Returns the first frame of @old, the last trace, that is no entry of a capture of up to @max entries
 * which has @n new frames and then frame @j; -1 if that is not known, or if it is frame @j.
 */
static inline __attribute__((always_inline)) int
entries_end(const struct memo *m, const struct memo_side *old, int j, int n, int max)
{
	if (n + old->end - j > max)
		return n < max ? j + (max - n) : -1;
	return m->complete ? old->end : -1;
}

/*
 * Makes a capture of the most frequent kind: a few ordinary frames are new, then comes a frame
 * that the last trace has too, and from there outwards nothing has changed. For these captures
 * this function does what walk(), walk_reuse() and memo_join() do, but without the cases that they
 * do not need, in half the instructions: see design.rst, "The software shadow stack".
 *
 * A frame can be equal to a frame of the last trace although something further out differs: its
 * function makes the same call each time, but was itself called from elsewhere. Then the walk goes
 * on. @bad is the outermost frame of the last trace that is known to differ; only frames further
 * out are compared again.
 *
 * The function is in one piece: with a function for each step, all inlined, gcc 12 makes "ramp" of
 * bench.rst 5 % slower with frame pointers, and 13 % at 128 frames. It is compiled twice: without
 * @may_fill, the last trace, @old, must be complete, and the array must have room for all of it. With it,
 * *@beyond becomes the first frame of @old that had no room, or stays as it is.
 *
 * Returns the number of entries written, *@reused of which come from the memo; or -1 if it is
 * another kind of capture, and then nothing was changed.
 */
static inline __attribute__((always_inline)) no_sanitize int
short_cut(const struct call *c, struct thread *t, struct memo_side *old, int *reused, int *beyond,
	  const bool may_fill)
{
	const uint64_t mask = load_relaxed(&rulecache.mask), gen = t->memo.gen, hi = t->native.hi;
	const int room = min(c->max, (unsigned int)MEMO_NEAR);
	uint64_t raw = c->ra, pc = native_strip(raw), sp = c->sp - hi, slot = sp, fp = c->fp;
	int j = old->first, x = old->fp_first, n = 0, bad = -1, end, live;
	struct new_frames new;

	if (unlikely(!range_has(&t->native, c->sp) || sp & 7))
		return -1;
	new.nfp = 0;
	new.cur = -1;
	new.now = (struct memo_fp){ .addr = 0 };
	for (;;) {
		const struct rulecache_entry *e;
		struct frame_exit to;
		uint64_t rule;

		while (old->sp[j] < (int32_t)sp)
			j++;
		if (!((old->sp[j] ^ (int32_t)sp) | (native_strip(old->raw[j]) ^ pc)) && j > bad) {
			while (unlikely(old->fp[x].use < j))
				x++;
			live = old->fp[x].from <= j;
			end = may_fill ? entries_end(&t->memo, old, j, n, (int)c->max) : old->end;
			if (unlikely((may_fill ? end < 0 : (unsigned int)(n + end - j) > c->max) ||
				     n + 3 > j || new.nfp + live > x ||
				     (live && old->fp[x].val != fp)))
				return -1;
			if (may_fill && end < old->end ?
				    memo_unchanged_to(&t->memo, old, j, x + live, end,
						      c->pcs + n + 1) :
				    likely(memo_unchanged(&t->memo, old, j, x + live,
							  c->pcs + n + 1)))
				break;
			bad = memo_last_bad(old, j, MEMO_NEAR - n);
			if (bad < 0)
				return -1;
		}
		e = rulecache_find(pc, gen, mask);
		if (unlikely(!e || n == room))
			return -1;
		rule = rulecache_read(e, pc | gen);
		if (!frame_leave_cached(rule, sp, fp - hi, &to))
			return -1;
		if (frame_cached_uses_fp(rule))
			use_fp(&new, fp, n);
		c->pcs[n] = pc;
		new.raw[3 + n] = raw;
		new.slot[3 + n] = (int32_t)(int64_t)slot;
		new.sp[3 + n++] = (int32_t)(int64_t)sp;
		if (rule & RULE_FP_SAVED) {
			new.now.addr = hi + to.fp;
			new.now.from = n;
			new.cur = -1;
			fp = frame_word(hi, to.fp);
		}
		slot = to.ra;
		raw = frame_word(hi, slot);
		pc = native_strip(raw);
		sp = to.cfa;
	}
	if (live) /* the value is the same, but behind new frames it comes from another place */
		use_fp(&new, fp, old->fp[x++].use - (j - n));
	c->pcs[n] = pc;
	if (!may_fill)
		end = old->end;
	else if (end < old->end)
		*beyond = end;
	*reused = end - 1 - j;
	if (n) {
		put_in_front(&t->memo, old, j, x, &new, n);
		old->raw[j] = raw;
		old->slot[j] = (int32_t)(int64_t)slot;
	} else if (j + 1 < end) { /* nothing is new: memo_repeat() can do the next capture */
		memo_set_again(&t->memo, old, c->max, modmap_state_seen(gen));
	}
	return n + end - j;
}

static __attribute__((noinline)) int short_cut_whole(const struct call *c, struct thread *t,
						     int *reused)
{
	int beyond;

	return short_cut(c, t, t->memo.now, reused, &beyond, false);
}

static __attribute__((noinline)) int short_cut_any(const struct call *c, struct thread *t,
						   int *reused, int *beyond)
{
	return short_cut(c, t, t->memo.known, reused, beyond, true);
}

/* Ends a capture, and releases modules that are gone. */
static inline __attribute__((always_inline)) void leave_near(struct thread *t)
{
	leave(t, true);
	modmap_tidy(true);
}

/* Tells whether no module has come or gone since the last trace was stored. */
static inline __attribute__((always_inline)) bool same_modules(const struct memo *m)
{
	return m->gen == rulecache_gen() && !modmap_loads_changed();
}

int near_capture(struct thread *t)
{
	const struct call *c = &t->call;
	struct memo *m = &t->memo;
	int n, reused = 0;

	if (unlikely(!m->now))
		return memo_repeat_cut(t);
	if (!m->near || !same_modules(m))
		return capture_kept(t);
	enter_modules(t);
	n = short_cut_whole(c, t, &reused);
	if (unlikely(n <= 0)) {
		leave_modules(t);
		return memo_is_larger(m->now, c->max) ? near_full(t) : capture_kept(t);
	}
	m->misses = 0;
	enter_count(t, reused);
	if (c->hook)
		call_tell_hook(c->hook, memo_id(m->now, m->now->end - n), SHSTK_END_COMPLETE,
			       false);
	if (unlikely(c->info != NULL))
		call_tell(c->info, 0, n, SHSTK_END_COMPLETE, c->pcs[n - 1], reused, 0);
	leave_near(t);
	return n;
}

/*
 * Tells the hook or the caller about a capture of @n entries, whose array is full if frame @beyond of the
 * last trace had no room.
 */
static void tell(const struct call *c, struct memo_side *s, int n, int reused, int beyond)
{
	const int end = beyond ? SHSTK_END_CAPACITY : SHSTK_END_COMPLETE;

	if (c->hook)
		call_tell_hook(c->hook, beyond ? shstk_trace_id(c->pcs, n) : memo_id(s, s->end - n),
			       end, false);
	if (c->info)
		call_tell(c->info, 0, n, end, beyond ? native_strip(s->raw[beyond]) : c->pcs[n - 1],
			  reused, 0);
}

int near_full(struct thread *t)
{
	const struct call *c = &t->call;
	struct memo *m = &t->memo;
	int n, reused = 0, beyond = 0;

	if (!m->known || !m->near || !same_modules(m))
		return capture_kept(t);
	enter_modules(t);
	n = short_cut_any(c, t, &reused, &beyond);
	if (n <= 0) {
		leave_modules(t);
		return capture_kept(t);
	}
	m->now = beyond ? NULL : m->known;
	m->misses = 0;
	enter_count(t, reused);
	tell(c, m->known, n, reused, beyond);
	leave_near(t);
	return n;
}
