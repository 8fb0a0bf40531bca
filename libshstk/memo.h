/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * memo.h - the software shadow stack: a thread's last trace with the places it
 * was read from. See Documentation/design.rst, "The software shadow stack".
 *
 * A memo has two sides. One holds the last trace; a capture writes what it walks
 * afresh to the other, until it meets a frame of the last trace. What follows is
 * verified: the words that the old walk depended on are read again and
 * compared. At the end the shorter of the two parts is copied to the longer one.
 *
 * Frames are stored innermost first, so that entries are written in the order
 * of the result, and in the middle of the arrays, so that younger frames can be
 * put in front of what stays. Each property has an array of its own, and
 * addresses are 32-bit distances from the end of the stack: verifying is bound
 * by the first-level cache.
 */
#ifndef SHSTK_MEMO_H
#define SHSTK_MEMO_H

#include "identity.h"
#include "native.h"

#define MEMO_ROOM 16384 /* frames a side has room for */
#define MEMO_START 4096 /* where a trace starts in it */
#define MEMO_BARRIERS 8
/*
 * A trace of more frames than this is long. What verifying it touches may not fit into
 * the first-level data cache; then a pass in one direction evicts what the next pass in
 * the same direction begins with. So long traces are verified in alternating directions:
 * each pass begins with what the one before touched last.
 */
#define MEMO_LONG 256
#define MEMO_PACKED 4096 /* most words that struct memo_packed holds */
#define MEMO_SEEN 4 /* a long trace is packed once it was found unchanged this often */
#define MEMO_NEAR 12 /* most frames that near_capture() walks before it must meet the memo */
#define MEMO_NEVER INT32_MAX /* a frame number or distance that is further out than any */

/**
 * struct memo_fp - a value of the frame pointer that a step uses
 * @addr: where it was restored from; 0: it was in a register all along.
 * @val: the value.
 * @from: first frame that has it.
 * @use: last frame that uses it. Frames from @from to @use are only the same
 *	if their frame pointer is.
 */
struct memo_fp {
	uint64_t addr;
	uint64_t val;
	int32_t from;
	int32_t use;
};

/**
 * struct memo_side - a trace
 * @raw: the word each frame's pc was read from, signed where pcs are.
 * @slot: the address of that word, from @anchor.
 * @sp: the frame's stack pointer, from @anchor. Ends with MEMO_NEVER.
 * @fp: values of the frame pointer, innermost first. Ends with MEMO_NEVER.
 * @first: innermost frame.
 * @end: behind the outermost one.
 * @fp_first: first of @fp.
 * @fp_end: behind the last one.
 * @id: identity of the trace from each frame outwards, of frames from @hashed on.
 * @hashed: see @id; may lie behind @end.
 * @anchor: end of the stack it is the trace of.
 * @nbarrier: number of @barrier.
 * @barrier: frames whose pc was not simply read from a slot (they have none):
 *	the step into them cannot be verified. Ascending.
 */
struct memo_side {
	uint64_t *raw;
	int32_t *slot;
	int32_t *sp;
	struct memo_fp *fp;
	int first, end;
	int fp_first, fp_end;
	uint64_t *id;
	int hashed;
	uint64_t anchor;
	int nbarrier;
	int barrier[MEMO_BARRIERS];
};

/**
 * struct memo_again - a capture at the same place as the last one
 * @sp: stack pointer of the last trace's innermost frame; 0: there is no such trace.
 * @pc: its program counter.
 * @fp: its frame pointer.
 * @fp_mask: ~0 if the trace depends on @fp, 0 if it does not.
 * @gen: generation of the rules that the trace was made by.
 * @slot: struct memo_side.slot of the frames behind the innermost one.
 * @raw: struct memo_side.raw of these frames.
 * @anchor: struct memo_side.anchor.
 * @n: number of these frames, at least 1.
 * @fps: the saved frame pointers that they depend on.
 * @fps_end: behind the last one.
 * @seen: how often it was found unchanged, if it is long; up to MEMO_SEEN.
 *
 * A copy of what the memo says, in the form in which the most frequent case needs it: a
 * program that is sampled or allocates again and again at one place. If @sp, @pc and @fp
 * are equal, verifying the words is all that is left to do.
 */
struct memo_again {
	uint64_t sp;
	uint64_t pc;
	uint64_t fp;
	uint64_t fp_mask;
	uint64_t gen;
	const int32_t *slot;
	const uint64_t *raw;
	const uint8_t *anchor;
	int n;
	const struct memo_fp *fps, *fps_end;
	uint8_t seen;
};

/**
 * struct memo_packed - words of memo_again in 6 bytes each instead of 12
 * @place: distance of each word from @base, in units of 8 bytes.
 * @low: lower half of each word's value, in the order of verify_packed_at().
 * @base: address of the innermost of these words.
 * @high: upper half of their values, which is the same for all.
 * @from: index of the first of them in memo_again.raw.
 * @end: behind the last one; equal to @from if none is packed.
 *
 * Verifying takes fewer loads, and more of a long trace fits into the first-level cache
 * beside the stack that it is compared with. Valid once memo_again.seen is MEMO_SEEN.
 */
struct memo_packed {
	uint16_t *place;
	uint32_t *low;
	const uint64_t *base;
	uint32_t high;
	int from, end;
};

/**
 * struct memo - a thread's last trace
 * @again: how to verify it where it was made.
 * @packed: how to do so sooner, if it is long.
 * @side: one holds the last trace, the other is room for the next one.
 * @last: index of the side that holds the last trace.
 * @now: that side; NULL if near_capture() can't use it.
 * @near: the last capture met the one before it after at most MEMO_NEAR frames.
 * @misses: captures in a row that found little of the one before them. Each doubles the
 *	next @wait, up to 31; the ninth sets it to 5 and starts no wait: see judge_memo().
 * @wait: captures that still go without the memo, because it did not pay.
 * @wait_key: identifies the innermost frames of the last capture that went without.
 * @complete: the last trace ends with the outermost frame of the thread.
 * @backwards: the direction in which a long trace is verified next; see MEMO_LONG.
 * @gen: generation of the rules that the last trace was made by.
 */
struct memo {
	struct memo_again again;
	struct memo_packed packed;
	struct memo_side side[2];
	unsigned int last;
	struct memo_side *now;
	bool near;
	uint8_t misses;
	uint8_t wait;
	uint64_t wait_key;
	bool complete;
	bool backwards;
	uint64_t gen;
};

/**
 * struct memo_walk - a capture's view of the memo
 * @memo: the memo.
 * @old: the last trace.
 * @fresh: frames walked so far.
 * @met: innermost frame of @old not yet passed; the one that was met.
 * @old_fp: innermost frame pointer of @old whose use is not yet passed.
 * @fp_from: where the current frame pointer was restored from, 0: nowhere.
 * @fp_since: first frame of @fresh that has it.
 * @fp_at: its index in @fresh, -1: not used so far.
 */
struct memo_walk {
	struct memo *memo;
	struct memo_side *old;
	struct memo_side *fresh;
	int met;
	int old_fp;
	uint64_t fp_from;
	int fp_since;
	int fp_at;
};

/* Bytes of memory that memo_init() wants. */
size_t memo_bytes(void);
void memo_init(struct memo *m, uint8_t *memory);

static inline void memo_clear_side(struct memo_side *s)
{
	s->first = s->end = MEMO_START;
	s->fp_first = s->fp_end = MEMO_START;
	s->hashed = MEMO_NEVER;
	s->nbarrier = 0;
}

/* Forget the last trace. */
void memo_clear(struct memo *m);

static inline int32_t memo_distance(const struct memo_walk *w, uint64_t addr)
{
	return (int32_t)(int64_t)(addr - w->fresh->anchor);
}

/* The frame pointer, as it is in frame @i of the fresh ones, is used there. */
static inline void memo_use_fp(struct memo_walk *w, int i, uint64_t fp)
{
	struct memo_side *f = w->fresh;

	if (w->fp_at < 0) {
		w->fp_at = f->fp_end++;
		f->fp[w->fp_at].addr = w->fp_from;
		f->fp[w->fp_at].val = fp;
		f->fp[w->fp_at].from = w->fp_since;
	}
	f->fp[w->fp_at].use = i;
}

/* From frame @i of the fresh ones on, the frame pointer is what @addr held. */
static inline void memo_restored_fp(struct memo_walk *w, int i, uint64_t addr)
{
	w->fp_from = addr;
	w->fp_since = i;
	w->fp_at = -1;
}

/* Begin a trace on the stack that ends at @anchor, dropping what was walked. */
static inline void memo_start(struct memo_walk *w, struct memo *m, uint64_t anchor)
{
	struct memo_side *old = &m->side[m->last];
	struct memo_side *fresh = &m->side[!m->last];

	memo_clear_side(fresh);
	fresh->anchor = anchor;
	w->memo = m;
	w->old = old;
	w->fresh = fresh;
	w->met = old->anchor == anchor ? old->first : old->end;
	w->old_fp = old->fp_first;
	memo_restored_fp(w, fresh->first, 0);
}

/* Does the last trace go through the frame at @sp, @pc and @fp? It is @w->met. */
static inline bool memo_meet(struct memo_walk *w, uint64_t pc, uint64_t sp, uint64_t fp)
{
	const struct memo_side *old = w->old;
	int32_t at = memo_distance(w, sp);

	while (old->sp[w->met] < at)
		w->met++;
	if (old->sp[w->met] != at || native_strip(old->raw[w->met]) != pc)
		return false;
	while (old->fp[w->old_fp].use < w->met)
		w->old_fp++;
	return old->fp[w->old_fp].from > w->met || old->fp[w->old_fp].val == fp;
}

/* Add a frame. @slot: where its pc @raw was read, 0: a barrier. False: no room. */
static inline bool memo_record(struct memo_walk *w, uint64_t raw, uint64_t slot, uint64_t sp)
{
	struct memo_side *f = w->fresh;
	int i = f->end;

	if (i >= MEMO_ROOM - 1 || f->anchor - sp >= INT32_MAX)
		return false;
	if (!slot) {
		if (f->nbarrier == MEMO_BARRIERS)
			return false;
		f->barrier[f->nbarrier++] = i;
		slot = sp;
	}
	f->raw[i] = raw;
	f->slot[i] = memo_distance(w, slot);
	f->sp[i] = memo_distance(w, sp);
	f->end++;
	return true;
}

/*
 * The frame recorded last is @w->met. Verify the frames behind it, write up to
 * @room of their pcs to @out. Returns the last frame of the old trace that is
 * still right, @w->met if there is none.
 */
int memo_verify(struct memo_walk *w, uint64_t *out, int room);

/*
 * Are the words of all frames behind frame @j of side @s, the last trace, what they were?
 * Writes the program counters to @out, also where the answer is no. One for traces longer
 * than MEMO_LONG, and one for others.
 */
bool memo_unchanged_long(struct memo *m, const struct memo_side *s, int j, uint64_t *out);
bool memo_unchanged_short(const struct memo_side *s, int j, uint64_t *out);

/*
 * For a trace that has changed: of the @n frames from @j on, without @j itself, which is
 * the outermost one whose word differs? -1: none.
 */
int memo_last_bad(const struct memo_side *s, int j, int n);

/* As memo_unchanged_long(), for the frames of memo_again, by memo_packed if that is valid. */
bool memo_unchanged_again(struct memo *m, uint64_t *out);

/* Do the places that frame pointers were restored from hold the same values? */
static inline no_sanitize bool memo_unchanged_fps(const struct memo_fp *p,
						  const struct memo_fp *end)
{
	uint64_t differ = 0;

	for (; p < end; p++)
		differ |= *(const stack_word *)(uintptr_t)p->addr ^ p->val;
	return !differ;
}

/* memo_unchanged_long() or _short(), and the frame pointers of @s from the @x-th on. */
static inline bool memo_unchanged(struct memo *m, const struct memo_side *s, int j, int x,
				  uint64_t *out)
{
	if (likely(s->end - j <= MEMO_LONG) ? unlikely(!memo_unchanged_short(s, j, out)) :
					      unlikely(!memo_unchanged_long(m, s, j, out)))
		return false;
	return memo_unchanged_fps(s->fp + x, s->fp + s->fp_end);
}

/* Frames of side @s before @i have changed: what was computed in @id for them is void. */
static inline void memo_unhash(struct memo_side *s, int i)
{
	if (s->hashed < i)
		s->hashed = i;
}

/* Compute @id of side @s from frame @from on, as far as it is not there. Returns that of @from. */
uint64_t memo_hash(struct memo_side *s, int from);

/* Identity of the trace on side @s from frame @from on, which there is. */
static inline uint64_t memo_id(struct memo_side *s, int from)
{
	return likely(s->hashed <= from) ? s->id[from] : memo_hash(s, from);
}

/* Until memo_publish() neither memo_again nor near_capture() may use the last trace. */
static inline void memo_hide(struct memo *m)
{
	m->now = NULL;
	m->again.sp = 0;
}

/* Fill memo_again from side @s, the last trace. */
static inline void memo_set_again(struct memo *m, const struct memo_side *s)
{
	struct memo_again *a = &m->again;
	int j = s->first, x = s->fp_first;

	a->sp = s->anchor + s->sp[j];
	a->pc = native_strip(s->raw[j]);
	a->fp_mask = 0;
	if (s->fp[x].from <= j) {
		a->fp_mask = ~0ull;
		a->fp = s->fp[x++].val;
	}
	a->fps = s->fp + x;
	a->fps_end = s->fp + s->fp_end;
	a->gen = m->gen;
	a->slot = s->slot + j + 1;
	a->raw = s->raw + j + 1;
	a->anchor = (const uint8_t *)(uintptr_t)s->anchor;
	a->n = s->end - (j + 1);
	a->seen = 0;
}

/*
 * Let memo_again and near_capture() use the last trace, if it leads to the outermost
 * frame of the stack that ends at @hi, and all words from its second frame on can be
 * verified.
 */
static inline void memo_publish(struct memo *m, uint64_t hi)
{
	struct memo_side *s = &m->side[m->last];

	memo_hide(m);
	if (m->complete && s->anchor == hi && s->first < s->end &&
	    (!s->nbarrier || s->barrier[s->nbarrier - 1] == s->first)) {
		m->now = s;
		if (s->end - s->first > 1)
			memo_set_again(m, s);
	}
}

void memo_join_slow(struct memo_walk *w);

/* All of the old trace behind @w->met stays, and the fresh part goes before it. */
static inline void memo_join(struct memo_walk *w)
{
	/* Nothing new: where the last capture was made, or in the same loop. */
	if (w->fresh->end - w->fresh->first == 1 && w->met == w->old->first)
		return;
	memo_join_slow(w);
}

/* No frame was met: the fresh part is the trace. */
void memo_replace(struct memo_walk *w);

/*
 * Take over frames of the old trace from behind @w->met up to a frame from which a
 * walk can go on, @v or one before it, and return it: its step either does not
 * use the frame pointer that comes into it but restores it (@fp_restored tells,
 * for a pc), or the value is known: *fp. Returns @w->met if there is none, and -1
 * if there is no room.
 */
int memo_take(struct memo_walk *w, int v, uint64_t *fp, bool (*fp_restored)(uint64_t pc));

#endif
