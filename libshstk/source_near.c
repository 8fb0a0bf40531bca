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
 * @sp: the frame's stack pointer, as in struct memo_side; the first frame is element 3.
 * @slot: the address of the word, as in struct memo_side; the first frame is element 3. Not used where
 *	NATIVE_RA_FIXED.
 * @fps: the values of the frame pointer that the steps out of the frames use.
 * @nfp: number of elements of @fps.
 * @fp_from: the first frame that has the present value of the frame pointer.
 * @fp_addr: the address that the value was restored from, or 0.
 */
struct new_frames {
	uint64_t raw[3 + MEMO_NEAR];
	int32_t sp[3 + MEMO_NEAR];
	int32_t slot[3 + MEMO_NEAR];
	struct memo_fp fps[MEMO_NEAR + 1];
	int nfp, fp_from;
	uint64_t fp_addr;
};

typedef uint64_t two_words __attribute__((vector_size(16), aligned(8), may_alias));
typedef int32_t four_ints __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint32_t four_words __attribute__((vector_size(16), aligned(4), may_alias));

/* Begins with no frames. */
static inline __attribute__((always_inline)) void begin_new(struct new_frames *f)
{
	f->nfp = 0;
	f->fp_from = 0;
	f->fp_addr = 0;
}

/* Notes that the frame pointer has the value @fp, and that frames up to @use use it. */
static inline __attribute__((always_inline)) void use_fp(struct new_frames *f, uint64_t fp, int use)
{
	if (!f->nfp || f->fps[f->nfp - 1].from != f->fp_from)
		f->fps[f->nfp++] =
			(struct memo_fp){ .addr = f->fp_addr, .val = fp, .from = f->fp_from };
	f->fps[f->nfp - 1].use = use;
}

/* Notes that from frame @n on the frame pointer has another value, which is the word at @addr. */
static inline __attribute__((always_inline)) void restore_fp(struct new_frames *f, int n,
							     uint64_t addr)
{
	f->fp_from = n;
	f->fp_addr = addr;
}

/* Adds new frame number @n, whose pc is @raw, read from @slot, and whose stack pointer is @sp. */
static inline __attribute__((always_inline)) void put_new(struct new_frames *f, int n, uint64_t raw,
							  uint64_t slot, uint64_t sp)
{
	f->raw[3 + n] = raw;
	f->sp[3 + n] = (int32_t)(int64_t)sp;
	if (!NATIVE_RA_FIXED)
		f->slot[3 + n] = (int32_t)(int64_t)slot;
}

/*
 * Returns the slots of four new frames, from element @i on. Those of elements that are no frames may be anything:
 * their sum may not fit, which is undefined for signed numbers.
 */
static inline four_ints four_slots(const struct new_frames *f, int i)
{
	if (NATIVE_RA_FIXED)
		return (four_ints)(*(const four_words *)&f->sp[i] + (uint32_t)native_ra_off(0));
	return *(const four_ints *)&f->slot[i];
}

/* Puts the new frames in front of frame @j of @s. There is room in front of the first frame. */
static inline void put_new_frames(struct memo_side *s, int j, const struct new_frames *f, int n)
{
	for (; n > 0; n -= 4) {
		j -= 4;
		*(two_words *)&s->raw[j] = *(const two_words *)&f->raw[n - 1];
		*(two_words *)&s->raw[j + 2] = *(const two_words *)&f->raw[n + 1];
		*(four_ints *)&s->slot[j] = four_slots(f, n - 1);
		*(four_ints *)&s->sp[j] = *(const four_ints *)&f->sp[n - 1];
	}
}

/*
 * Makes the trace in @s consist of @n new frames, frame @j and the frames behind it. Its frame
 * pointers are the new ones and those of @s from @x on; its words are those of the frames behind @j.
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
	while (unlikely(s->word[s->word_first].frame <= j))
		s->word_first++;
	for (i = 0; i < f->nfp; i++) {
		s->fp[x - f->nfp + i] = f->fps[i];
		s->fp[x - f->nfp + i].from += j - n;
		s->fp[x - f->nfp + i].use += j - n;
	}
}

/**
 * struct near_walk - a walk over new frames
 * @hi: end of the stack; other addresses are distances from it.
 * @gen: generation of the rules.
 * @mask: mask of the rule cache.
 * @n: number of frames that were left.
 * @raw: the word that the pc of the next frame was read from.
 * @slot: the place of that word.
 * @pc: that pc.
 * @sp: the frame's stack pointer.
 * @fp: its frame pointer, as it is.
 */
struct near_walk {
	uint64_t hi, gen, mask;
	int n;
	uint64_t raw, slot, pc, sp, fp;
};

static inline __attribute__((always_inline)) struct near_walk
begin_walk(const struct call *c, const struct memo *m, const struct range *stack)
{
	const uint64_t sp = c->sp - stack->hi;

	return (struct near_walk){
		.hi = stack->hi,
		.gen = rulecache_gen_of(m->number),
		.mask = load_relaxed(&rulecache.mask),
		.raw = c->ra,
		.slot = sp,
		.pc = native_strip(c->ra),
		.sp = sp,
		.fp = c->fp,
	};
}

/*
 * Notes the frame that @w has come to in @new and @pcs, and leaves it. Returns false if @room frames were
 * left already, or if the frame is not an ordinary one whose rule is known.
 */
static inline __attribute__((always_inline)) no_sanitize bool
leave_frame(struct near_walk *w, struct new_frames *new, uint64_t *pcs, int room)
{
	const struct rulecache_entry *e = rulecache_find(w->pc, w->gen, w->mask);
	struct frame_exit to;
	uint64_t rule;

	if (unlikely(!e || w->n == room))
		return false;
	rule = rulecache_read(e, w->pc | w->gen);
	if (!frame_leave_cached(rule, w->sp, w->fp - w->hi, &to))
		return false;
	if (frame_cached_uses_fp(rule))
		use_fp(new, w->fp, w->n);
	pcs[w->n] = w->pc;
	put_new(new, w->n++, w->raw, w->slot, w->sp);
	if (rule & RULE_FP_SAVED) {
		restore_fp(new, w->n, w->hi + to.fp);
		w->fp = frame_word(w->hi, to.fp);
	}
	w->slot = to.ra;
	w->raw = frame_word(w->hi, to.ra);
	w->pc = native_strip(w->raw);
	w->sp = to.cfa;
	return true;
}

/* Tells whether @w has come to frame @j of @s. */
static inline __attribute__((always_inline)) bool is_at(const struct near_walk *w,
							const struct memo_side *s, int j)
{
	return !((s->sp[j] ^ (int32_t)w->sp) | (native_strip(s->raw[j]) ^ w->pc));
}

/*
 * Puts the new frames of @w in front of frame @j of the last trace @old, which @w has come to. @x: the first
 * frame pointer of @old that frame @j or one behind it has.
 */
static inline __attribute__((always_inline)) void join(const struct near_walk *w, struct memo *m,
						       struct memo_side *old, int j, int x,
						       struct new_frames *new)
{
	/* The value is the same, but behind new frames it comes from another place. */
	if (old->fp[x].from <= j) {
		use_fp(new, w->fp, old->fp[x].use - (j - w->n));
		x++;
	}
	put_in_front(m, old, j, x, new, w->n);
	old->raw[j] = w->raw;
	old->slot[j] = (int32_t)(int64_t)w->slot;
}

/* Writes the pcs of the frames of @s behind frame @j. */
static __attribute__((noinline)) void write_behind(const struct memo_side *s, int j, uint64_t *pcs)
{
	while (++j < s->end)
		*pcs++ = native_strip(s->raw[j]);
}

/* Lets memo_repeat() make the next capture at the place of this one, where nothing was new. */
static inline void repeat_next(struct memo *m, struct memo_side *s, unsigned int max)
{
	if (s->end - s->first > 1 && s->word_first == s->word_end)
		memo_set_again(m, s, max, modmap_state_seen(m->number));
}

/*
 * Makes a capture of the most frequent kind: a few ordinary frames are new, then comes a frame
 * that the last trace has too, and from there outwards nothing has changed. For these captures
 * this function does what walk(), walk_reuse() and memo_join() do, but without the cases that they
 * do not need: see design.rst, "The software shadow stack".
 *
 * What has changed is asked first, from the outermost frame inwards. So the walk looks for the last trace only
 * where it has come as far out as that. A frame may be equal to one of the last trace although something
 * further out differs: its function makes the same call each time, but was itself called from elsewhere.
 *
 * The place of the entries behind the frame that both have is known only when the walk comes there.
 * Until then it is assumed that as many frames are new as have gone.
 *
 * Returns the number of entries written, *@reused of which come from the memo; or -1 if it is
 * another kind of capture, and then nothing was changed.
 */
static inline __attribute__((always_inline)) no_sanitize int
short_cut_whole(const struct call *c, struct memo *m, const struct range *stack, int *reused)
{
	struct near_walk w = begin_walk(c, m, stack);
	struct memo_side *old = m->now;
	const int max = (int)c->max, room = min(max, MEMO_NEAR);
	int j = old->first, x = old->fp_first, shift, least;
	uint64_t *pcs = c->pcs;
	struct new_frames new;

	if (unlikely(!range_has(stack, c->sp) || w.sp & 7 || j < MEMO_NEAR + 3 ||
		     x < MEMO_NEAR + 1))
		return -1;
	while (old->sp[j] < (int32_t)w.sp)
		j++;
	shift = min((old->sp[j] > (int32_t)w.sp) - j, max - old->end);
	if (unlikely(j == old->end || j + 1 + shift < 0))
		return -1;
	j = memo_common(m, old, j, pcs + (j + 1 + shift));
	if (unlikely(j == old->end))
		return -1;
	least = old->sp[j];
	begin_new(&new);
	for (;;) {
		if ((int32_t)w.sp >= least) {
			while (old->sp[j] < (int32_t)w.sp)
				j++;
			while (old->fp[x].use < j)
				x++;
			if (is_at(&w, old, j) && (old->fp[x].from > j || old->fp[x].val == w.fp))
				break;
		}
		if (!leave_frame(&w, &new, pcs, room))
			return -1;
	}
	if (w.n != j + shift) {
		if (w.n + old->end - j > max)
			return -1;
		write_behind(old, j, pcs + w.n + 1);
	}
	pcs[w.n] = w.pc;
	if (w.n)
		join(&w, m, old, j, x, &new);
	else
		repeat_next(m, old, max);
	*reused = old->end - 1 - j;
	return w.n + old->end - j;
}

/*
 * Returns the first frame of @old, the last trace, that is no entry of a capture of up to @max entries
 * which has @n new frames and then frame @j; -1 if that is not known, or if it is frame @j.
 */
static int entries_end(const struct memo *m, const struct memo_side *old, int j, int n, int max)
{
	if (n + old->end - j > max)
		return n < max ? j + (max - n) : -1;
	return m->complete ? old->end : -1;
}

/*
 * Does what short_cut_whole() does if the array may have no room for all of the trace, of which the memo may
 * have a part only: then what is beyond the array is not compared. *@beyond becomes the first
 * frame of the memo that had no room, or stays as it is. @bad is the outermost frame of the last trace that is
 * known to differ; only frames further out are compared again.
 */
static __attribute__((noinline)) no_sanitize int
short_cut_any(const struct call *c, struct thread *t, int *reused, int *beyond)
{
	struct near_walk w = begin_walk(c, &t->memo, &t->native);
	struct memo *m = &t->memo;
	struct memo_side *old = m->known;
	const int room = min(c->max, (unsigned int)MEMO_NEAR);
	int j = old->first, x = old->fp_first, bad = -1, end, live;
	struct new_frames new;

	if (unlikely(!range_has(&t->native, c->sp) || w.sp & 7))
		return -1;
	begin_new(&new);
	for (;;) {
		while (old->sp[j] < (int32_t)w.sp)
			j++;
		if (is_at(&w, old, j) && j > bad) {
			while (old->fp[x].use < j)
				x++;
			live = old->fp[x].from <= j;
			end = entries_end(m, old, j, w.n, (int)c->max);
			if (unlikely(end < 0 || w.n + 3 > j || new.nfp + live > x ||
				     (live && old->fp[x].val != w.fp)))
				return -1;
			if (end < old->end ?
				    memo_unchanged_to(m, old, j, x + live, end, c->pcs + w.n + 1) :
				    memo_unchanged(m, old, j, x + live, c->pcs + w.n + 1))
				break;
			bad = memo_last_bad(old, j, MEMO_NEAR - w.n);
			if (bad < 0)
				return -1;
		}
		if (!leave_frame(&w, &new, c->pcs, room))
			return -1;
	}
	c->pcs[w.n] = w.pc;
	if (w.n)
		join(&w, m, old, j, x, &new);
	else if (j + 1 < end)
		memo_set_again(m, old, c->max, modmap_state_seen(m->number));
	if (end < old->end)
		*beyond = end;
	*reused = end - 1 - j;
	return w.n + end - j;
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
	return m->number == rulecache_number() && !modmap_loads_changed();
}

/* Makes a capture for which the memo has a trace, and no place has one. */
static __attribute__((noinline)) int near_memo(struct thread *t)
{
	const struct call *c = &t->call;
	struct memo *m = &t->memo;
	int n, reused = 0;
	uint64_t id = 0;

	if (unlikely(!m->now))
		return memo_repeat_cut(t);
	if (!m->near || !same_modules(m))
		return capture_kept(t);
	enter_modules(t);
	n = short_cut_whole(c, m, &t->native, &reused);
	if (unlikely(n <= 0)) {
		leave_modules(t);
		return memo_is_larger(m->now, c->max) ? near_full(t) : capture_kept(t);
	}
	m->misses = 0;
	enter_count(t, reused);
	if (c->hook) {
		id = memo_id(m->now, m->now->end - n);
		call_tell_hook(c->hook, id, SHSTK_END_COMPLETE, false);
	}
	if (unlikely(c->keep != NULL))
		place_keep(t->places, c->keep, c, m->now, m->now->end - n, id,
			   modmap_state_seen(m->number));
	if (unlikely(c->info != NULL))
		call_tell(c->info, 0, n, SHSTK_END_COMPLETE, c->pcs[n - 1], reused,
			  memo_count_guessed(m->now, m->now->end - n));
	leave_near(t);
	return n;
}

/* Makes a capture whose trace is that of @x. Returns the number of entries. */
static inline __attribute__((always_inline)) int at_place(struct thread *t, struct place *x)
{
	struct call *c = &t->call;
	struct shstk_info *info = c->info;
	const int n = x->n + 1, guessed = x->guessed;
	uint64_t *pcs = c->pcs;

	if (unlikely(place_repeats(t->places, x, t->captures))) {
		c->keep = NULL;
		return near_memo(t);
	}
	pcs[0] = x->pc;
	enter_count(t, true);
	if (c->hook) {
		if (unlikely(!x->id))
			x->id = shstk_trace_id(pcs, n);
		call_tell_hook(c->hook, x->id, SHSTK_END_COMPLETE, false);
	}
	leave_outermost(t);
	if (unlikely(info != NULL))
		call_tell(info, 0, n, SHSTK_END_COMPLETE, pcs[n - 1], n - 1, guessed);
	return n;
}

/*
 * Looks for the trace at @x, which is that with @tag of the place of the call if it has @hash. Returns true if
 * it is the trace of the call. Otherwise notes in the call whether @x is to keep that.
 */
static inline __attribute__((always_inline)) bool look(struct thread *t, struct place *x,
						       uint32_t hash, uint8_t tag)
{
	const struct places *p = t->places;
	struct call *c = &t->call;

	c->keep = x;
	c->keep_tag = tag;
	if (!place_is(x, native_strip(c->ra), c->sp) || x->tag != tag || place_branches(x)) {
		if (!place_seen(x, hash))
			c->keep = NULL;
	} else if (x->wait) {
		x->wait--;
		c->keep = NULL;
	} else if (place_serves(p, x, c, t->native.hi)) {
		if (place_unchanged(p, x, c->pcs + 1)) {
			place_served(x, hash);
			return true;
		}
		place_missed(x);
	} else if (!place_has_words(p, x)) {
		place_missed(x);
	}
	return false;
}

/* Makes a capture at @x, the place with @home as its hash, which branches. */
static __attribute__((noinline)) int near_branch(struct thread *t, struct place *x, uint32_t home)
{
	struct places *p = t->places;
	struct place *y;
	uint32_t hash;

	if (unlikely(p->hi != t->native.hi)) {
		t->call.keep = x; /* which then begins anew */
		t->call.keep_tag = 0;
		return near_memo(t);
	}
	if (x->wait) {
		x->wait--;
		return near_memo(t);
	}
	hash = place_branch_hash(p, x);
	y = place_branch_at(p, x, hash);
	if (likely(y != x && look(t, y, hash, place_tag(hash)))) {
		place_served(x, home);
		return at_place(t, y);
	}
	place_branch_missed(x);
	return near_memo(t);
}

int near_capture(struct thread *t)
{
	struct call *c = &t->call;
	const uint64_t pc = native_strip(c->ra);
	const uint32_t hash = places_hash(pc, c->sp);
	struct place *x = places_at(t->places, hash);

	if (place_is(x, pc, c->sp) && place_branches(x))
		return near_branch(t, x, hash);
	if (look(t, x, hash, 0))
		return at_place(t, x);
	if (c->keep == x && place_is(x, pc, c->sp) && place_branch(t->places, x))
		c->keep = NULL;
	return near_memo(t);
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
