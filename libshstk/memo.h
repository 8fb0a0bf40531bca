/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * memo.h - the software shadow stack: a thread's last trace, with the places that it was read from.
 * See Documentation/design.rst, "The software shadow stack".
 *
 * A memo has two sides. One holds the last trace. A capture writes the frames that it walks to the
 * other side, until it meets a frame of the last trace. The frames behind that one are verified:
 * the words on which the old walk depended are read again and compared. At the end the shorter of
 * the two parts is copied to the longer one.
 *
 * Frames are stored innermost first, so that entries are written in the order of the result. They
 * are stored in the middle of the arrays, so that younger frames can be put in front of what stays.
 * Each property has an array of its own, and addresses are 32-bit distances from the end of the
 * stack, because the first-level cache limits the speed of verifying.
 */
#ifndef SHSTK_MEMO_H
#define SHSTK_MEMO_H

#include "identity.h"
#include "native.h"
#include "verify.h"

#define MEMO_ROOM 16384 /* number of frames that a side has room for */
#define MEMO_START 4096 /* index in a side at which a trace starts */
#define MEMO_BARRIERS 8
#define MEMO_WORDS 4096 /* number of words beside the slots that a side has room for */
#define MEMO_WORDS_START 1024 /* index at which a trace's words start */
/*
 * A trace of more frames than MEMO_LONG is long. The memory that verifying it touches may not fit
 * into the first-level data cache; then a pass in one direction evicts what the next pass in the
 * same direction begins with. So long traces are verified in alternating directions: each pass
 * begins with what the pass before touched last.
 */
#define MEMO_LONG 256
#define MEMO_PACKED 4096 /* largest number of words in struct memo_packed */
#define MEMO_SEEN 4 /* number of times that a trace is found unchanged before it is packed */
#define MEMO_RECORDS 8 /* least number of frame records that are worth struct frame_records */
#define MEMO_REST 8 /* largest number of other frame pointers beside them */
#define MEMO_FOURS 128 /* largest number of frames in struct frame_fours */
/* Number of frames that near_capture() walks at most before it meets the memo. */
#define MEMO_NEAR 12
#define MEMO_NEVER INT32_MAX /* a frame number or distance that is larger than any other */
#define MEMO_NO_SIZE UINT32_MAX /* a size that no array has */

/**
 * struct memo_fp - a value of the frame pointer that a step uses
 * @addr: address that the value was restored from; 0 if it was in the register all along.
 * @val: the value.
 * @from: first frame that has the value.
 * @use: last frame that uses the value. The frames from @from to @use are only unchanged if their
 *	frame pointer is.
 */
struct memo_fp {
	uint64_t addr;
	uint64_t val;
	int32_t from;
	int32_t use;
};

/**
 * struct memo_word - a word of the stack that was read by a step that no simple rule describes
 * @addr: address of the word.
 * @val: the word.
 * @frame: index of the frame that the step leads to.
 * @mark: marks of that frame, such as SHSTK_MARK_GUESS.
 */
struct memo_word {
	uint64_t addr;
	uint64_t val;
	int32_t frame;
	uint32_t mark;
};

/**
 * struct memo_side - a trace
 * @raw: for each frame, the word that its pc was read from; on arm64 it may be signed.
 * @slot: for each frame, the address of that word, as a distance from @anchor.
 * @sp: for each frame, its stack pointer, as a distance from @anchor. Ends with MEMO_NEVER.
 * @fp: values of the frame pointer, innermost first. Ends with MEMO_NEVER.
 * @word: words that steps read which no simple rule describes, innermost first. Ends with
 *	MEMO_NEVER.
 * @first: index of the innermost frame.
 * @end: index behind the outermost frame.
 * @fp_first: index of the first element of @fp.
 * @fp_end: index behind the last element of @fp.
 * @word_first: index of the first element of @word.
 * @word_end: index behind the last element of @word.
 * @id: for each frame from @hashed on, the identity of the trace from this frame outwards.
 * @hashed: index of the first frame whose @id is valid; may be more than @end.
 * @anchor: end of the stack that was walked.
 * @nbarrier: number of elements of @barrier.
 * @barrier: indices, in ascending order, of the frames whose pc was not read from a slot, or not
 *	only from words that are known. They have no slot, so the step into them cannot be
 *	verified.
 */
struct memo_side {
	uint64_t *raw;
	int32_t *slot;
	int32_t *sp;
	struct memo_fp *fp;
	struct memo_word *word;
	int first, end;
	int fp_first, fp_end;
	int word_first, word_end;
	uint64_t *id;
	int hashed;
	uint64_t anchor;
	int nbarrier;
	int barrier[MEMO_BARRIERS];
};

/* Which function verifies the frames of struct memo_again. */
enum memo_way {
	MEMO_SHORT, /* memo_repeat_short() */
	MEMO_SHORT_FPS, /* memo_repeat_short(), which counts: there may be many frame records */
	MEMO_IN_FOURS, /* memo_repeat_fours() */
	MEMO_RECORDED, /* memo_repeat_records() */
	MEMO_ANY, /* memo_repeat_any() */
};

/**
 * struct memo_again - how to verify the last trace for a capture at the same place
 * @sp: stack pointer of the last trace's innermost frame; 0 if there is no such trace.
 * @pc: program counter of that frame.
 * @fp: frame pointer of that frame.
 * @fp_mask: ~0 if the trace depends on @fp, 0 if it does not.
 * @state: what is loaded and the generation of the rules by which the trace was made, for
 *	modmap_state_is().
 * @slot: struct memo_side.slot of the frames behind the innermost one.
 * @raw: struct memo_side.raw of the frames behind the innermost one.
 * @anchor: struct memo_side.anchor.
 * @n: number of frames behind the innermost one that are entries of the capture, at least 1.
 * @least: least size of an array for which these are all frames of the trace; MEMO_NO_SIZE if there
 *	are more.
 * @cut: size of the array that these frames fill while there are more; MEMO_NO_SIZE if there are not.
 * @beyond: if there are more frames, address of the word of the first of them.
 * @beyond_raw: that word.
 * @fps: first of the saved frame pointers on which these frames depend.
 * @fps_end: address behind the last of these frame pointers.
 * @way: which function verifies the frames.
 * @seen: how often they were found unchanged if they are many or have many frame pointers, up to
 *	MEMO_SEEN.
 *
 * This is a copy of what the memo says, in the form that the most frequent case needs: a program
 * that is sampled, or allocates, at one place again and again. If @sp, @pc and @fp are equal, only
 * the words are left to verify.
 */
struct memo_again {
	uint64_t sp;
	uint64_t pc;
	uint64_t fp;
	uint64_t fp_mask;
	uint64_t state;
	const int32_t *slot;
	const uint64_t *raw;
	const uint8_t *anchor;
	int n;
	uint32_t least, cut;
	const stack_word *beyond;
	uint64_t beyond_raw;
	const struct memo_fp *fps, *fps_end;
	enum memo_way way;
	uint8_t seen;
};

/**
 * struct memo_packed - words of struct memo_again in 6 bytes each instead of 12
 * @place: for each word, its distance from @base in units of 8 bytes.
 * @low: for each word, the lower half of its value, in the order of verify_packed_at().
 * @base: address of the innermost packed word.
 * @high: upper half of the values, which is the same for all words.
 * @from: index of the first packed word in memo_again.raw.
 * @end: index behind the last packed word; equal to @from if no word is packed.
 *
 * Verifying packed words takes fewer loads, and more of a long trace fits into the first-level
 * cache beside the stack that it is compared with. Valid once memo_again.seen is MEMO_SEEN.
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
 * @again: the trace in the form for a capture at the same place.
 * @packed: the words of @again in less memory, if the trace is long.
 * @records: the frame records of @again in less memory, in the memory of @packed. Valid while
 *	memo_again.way is MEMO_RECORDED.
 * @fours: all frames of @again, in the same memory. Valid while memo_again.way is MEMO_IN_FOURS.
 * @rest: the frame pointers of @again that do not lie in @records or @fours.
 * @side: one side holds the last trace, the other is room for the next one.
 * @last: index of the side that holds the last trace.
 * @now: the side that holds the last trace, if it is @complete; NULL if near_capture() cannot use it, or
 *	if the last capture has filled its array.
 * @known: the side that holds the last trace; NULL if near_full() cannot use it. That does not compare
 *	words beside the slots.
 * @near: the last capture met the trace before it after at most MEMO_NEAR frames.
 * @misses: number of captures in a row that found little of the trace before them. Each doubles the
 *	next @wait, up to 31; the ninth sets it to 5 and starts no wait: see judge_memo().
 * @wait: number of captures that will still not use the memo, because it did not pay.
 * @wait_key: identifies the innermost frames of the last capture that did not use the memo.
 * @complete: the last trace ends with the outermost frame of the thread.
 * @backwards: direction in which a long trace was verified last; see MEMO_LONG.
 * @number: number of the generation of the rules by which the last trace was made.
 */
struct memo {
	struct memo_again again;
	struct memo_packed packed;
	struct frame_records records;
	struct frame_fours fours;
	struct memo_fp rest[MEMO_REST];
	struct memo_side side[2];
	unsigned int last;
	struct memo_side *now, *known;
	bool near;
	uint8_t misses;
	uint8_t wait;
	uint64_t wait_key;
	bool complete;
	bool backwards;
	uint64_t number;
};

/**
 * struct memo_walk - a capture's view of the memo
 * @memo: the memo.
 * @old: the last trace.
 * @fresh: the frames that this capture has walked so far.
 * @met: index of the innermost frame of @old that the walk has not passed; if a frame was met, it
 *	is that one.
 * @old_fp: index of the innermost frame pointer of @old whose last use the walk has not passed.
 * @old_word: index of the innermost word of @old whose frame the walk has not passed; it is only
 *	moved when that is asked for.
 * @fp_from: address that the current frame pointer was restored from; 0 if it was not.
 * @fp_since: index of the first frame of @fresh that has the current frame pointer.
 * @fp_at: index of the current frame pointer in the @fp of @fresh; -1 if no step has used it.
 */
struct memo_walk {
	struct memo *memo;
	struct memo_side *old;
	struct memo_side *fresh;
	int met;
	int old_fp;
	int old_word;
	uint64_t fp_from;
	int fp_since;
	int fp_at;
};

/* A frame pointer that a step does not tell counts as this word, 0, which is always the same. */
extern const uint64_t memo_no_fp __attribute__((visibility("hidden")));

/* Returns how many bytes of memory memo_init() needs. */
size_t memo_bytes(void);
void memo_init(struct memo *m, uint8_t *memory);

static inline void memo_clear_side(struct memo_side *s)
{
	s->first = s->end = MEMO_START;
	s->fp_first = s->fp_end = MEMO_START;
	s->word_first = s->word_end = MEMO_WORDS_START;
	s->hashed = MEMO_NEVER;
	s->nbarrier = 0;
}

/* Forgets the last trace. */
void memo_clear(struct memo *m);

static inline int32_t memo_distance(const struct memo_walk *w, uint64_t addr)
{
	return (int32_t)(int64_t)(addr - w->fresh->anchor);
}

/* Notes that the step from frame @i of the fresh part uses the current frame pointer @fp. */
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

/* Notes that from frame @i of the fresh part on, the frame pointer is the word at @addr. */
static inline void memo_restored_fp(struct memo_walk *w, int i, uint64_t addr)
{
	w->fp_from = addr;
	w->fp_since = i;
	w->fp_at = -1;
}

/* Begins a trace on the stack that ends at @anchor, and drops the frames walked so far. */
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
	w->old_word = old->word_first;
	memo_restored_fp(w, fresh->first, 0);
}

/*
 * Returns true if the last trace goes through the frame with @sp, @pc and @fp. It is then frame
 * @w->met.
 */
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

/*
 * Adds a frame whose pc is in the word @raw, read from address @slot; a @slot of 0 makes it a
 * barrier. Returns false if there is no room.
 */
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
 * Notes that the step to the next frame of the fresh part, which has the marks @mark, read @val at
 * @addr. Returns false if there is no room.
 */
static inline bool memo_add_word(struct memo_walk *w, uint64_t addr, uint64_t val, uint8_t mark)
{
	struct memo_side *f = w->fresh;

	if (f->word_end >= MEMO_WORDS - 1)
		return false;
	f->word[f->word_end++] = (struct memo_word){ addr, val, f->end, mark };
	return true;
}

/*
 * Verifies the frames of the old trace behind @w->met, which is the frame recorded last, and writes
 * up to @room of their pcs to @out. Returns the index of the last frame that is still valid; that
 * is @w->met if no other frame is. Moves @w->old_word to the words behind @w->met.
 */
int memo_verify(struct memo_walk *w, uint64_t *out, int room);

/*
 * Tells whether the step out of frame @v of the old trace still leads to the frame behind it, as far
 * as that can be verified. memo_verify() must have found that frame @v is valid.
 */
bool memo_goes_on(const struct memo_walk *w, int v);

/*
 * Returns true if the words of the frames behind frame @j and before frame @end of side @s, the last
 * trace, are unchanged. Writes the program counters to @out, also where it returns false. There is
 * one function for traces longer than MEMO_LONG and one for others.
 */
bool memo_unchanged_long(struct memo *m, const struct memo_side *s, int j, int end, uint64_t *out);
bool memo_unchanged_short(const struct memo_side *s, int j, int end, uint64_t *out);

/* These do what memo_common() does, on CPUs that verify_wide() is for, and on any CPU. */
int memo_common_wide(struct memo *m, const struct memo_side *s, int j, uint64_t *out);
int memo_common_any(struct memo *m, const struct memo_side *s, int j, uint64_t *out);

/*
 * Returns the innermost frame of side @s, the last trace, from frame @j on, behind which nothing has
 * changed: neither the words of the frames behind it, nor those that frame pointers and steps were read
 * from there. It is s->end if there is none. Writes the program counters of these frames to @out, where
 * frame @j + 1 would be first. Frame @j must be one, and must not lie below the stack pointer.
 */
static inline int memo_common(struct memo *m, const struct memo_side *s, int j, uint64_t *out)
{
	return likely(verify_is_wide()) ? memo_common_wide(m, s, j, out) :
					  memo_common_any(m, s, j, out);
}

/*
 * For a trace that has changed: returns the outermost of the frames @j + 1 to @j + @n - 1 whose
 * word differs, or -1 if none does.
 */
int memo_last_bad(const struct memo_side *s, int j, int n);

/*
 * Does what memo_unchanged_long() does for the frames of memo_again, of which there may be any
 * number; uses memo_packed if it is valid.
 */
bool memo_unchanged_again(struct memo *m, uint64_t *out);

/* Counts that the frames of @again were found unchanged, and packs them if that is often so. */
void memo_count_again(struct memo *m);

/* Returns true if all addresses from which frame pointers were restored hold the same values. */
static inline no_sanitize bool memo_unchanged_fps(const struct memo_fp *p,
						  const struct memo_fp *end)
{
	uint64_t differ = 0;

	for (; p < end; p++)
		differ |= *(const stack_word *)(uintptr_t)p->addr ^ p->val;
	return !differ;
}

/* Does what memo_unchanged_short() and memo_unchanged_long() do for any number of frames. */
static inline bool memo_unchanged_frames(struct memo *m, const struct memo_side *s, int j, int end,
					 uint64_t *out)
{
	return likely(end - j <= MEMO_LONG) ? likely(memo_unchanged_short(s, j, end, out)) :
					      likely(memo_unchanged_long(m, s, j, end, out));
}

/*
 * Returns true if the words of all frames behind frame @j of @s are unchanged, and the frame
 * pointers of @s from index @x on, too.
 */
static inline bool memo_unchanged(struct memo *m, const struct memo_side *s, int j, int x,
				  uint64_t *out)
{
	return memo_unchanged_frames(m, s, j, s->end, out) &&
	       memo_unchanged_fps(s->fp + x, s->fp + s->fp_end);
}

/* Returns the first frame pointer of @s, from index @x on, that is set in frame @end or behind it. */
static inline const struct memo_fp *memo_fps_end(const struct memo_side *s, int x, int end)
{
	const struct memo_fp *p = s->fp + x;

	while (p->from < end)
		p++;
	return p;
}

/* Returns the address of the word that the pc of frame @i of @s was read from. */
static inline const stack_word *memo_word_of(const struct memo_side *s, int i)
{
	return (const stack_word *)(uintptr_t)(s->anchor + s->slot[i]);
}

/*
 * Does what memo_unchanged() does for the frames before frame @end, which there is, and for the word
 * that leads to that one.
 */
static inline no_sanitize bool memo_unchanged_to(struct memo *m, const struct memo_side *s, int j,
						 int x, int end, uint64_t *out)
{
	return *memo_word_of(s, end) == s->raw[end] && memo_unchanged_frames(m, s, j, end, out) &&
	       memo_unchanged_fps(s->fp + x, memo_fps_end(s, x, end));
}

/*
 * Drops the identities in @id of side @s for all frames before @i, because these frames have
 * changed.
 */
static inline void memo_unhash(struct memo_side *s, int i)
{
	if (s->hashed < i)
		s->hashed = i;
}

/*
 * Computes @id of side @s from frame @from on, as far as it is missing. Returns the @id of @from.
 */
uint64_t memo_hash(struct memo_side *s, int from);

/* Returns the identity of the trace on side @s from frame @from on, which must exist. */
static inline uint64_t memo_id(struct memo_side *s, int from)
{
	return likely(s->hashed <= from) ? s->id[from] : memo_hash(s, from);
}

/* Keeps memo_again, near_capture() and near_full() from using the last trace until memo_publish(). */
static inline void memo_hide(struct memo *m)
{
	m->now = m->known = NULL;
	m->again.sp = 0;
}

/* Returns how @n frames that use @nfp frame pointers are verified first. */
static inline enum memo_way memo_first_way(int n, int nfp)
{
	if (n > MEMO_LONG || !verify_is_wide())
		return MEMO_ANY;
	return VERIFY_PACKED && nfp >= MEMO_RECORDS ? MEMO_SHORT_FPS : MEMO_SHORT;
}

/* Lets @a have only those frames of @s, which has more, that fill an array of @max entries. */
static inline void memo_cut_again(struct memo_again *a, const struct memo_side *s, int max)
{
	int beyond = s->first + max;

	a->n = max - 1;
	a->least = MEMO_NO_SIZE;
	a->cut = max;
	a->beyond = memo_word_of(s, beyond);
	a->beyond_raw = s->raw[beyond];
	a->fps_end = memo_fps_end(s, a->fps - s->fp, beyond);
}

/*
 * Fills memo_again from side @s, which holds the last trace, for captures into arrays of @max entries
 * while modmap_state_is() knows @state.
 * If it has more frames than that, @max is at least 2; if not, its last frame is the outermost one.
 */
static inline void memo_set_again(struct memo *m, const struct memo_side *s, unsigned int max,
				  uint64_t state)
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
	a->state = state;
	a->slot = s->slot + j + 1;
	a->raw = s->raw + j + 1;
	a->anchor = (const uint8_t *)(uintptr_t)s->anchor;
	a->n = s->end - (j + 1);
	a->least = a->n + 1;
	a->cut = MEMO_NO_SIZE;
	if (unlikely(a->least > max))
		memo_cut_again(a, s, max);
	a->way = memo_first_way(a->n, a->fps_end - a->fps);
	a->seen = 0;
}

/* Tells whether @s has more frames than an array of @max entries has room for. */
static inline bool memo_is_larger(const struct memo_side *s, unsigned int max)
{
	return (unsigned int)(s->end - s->first) > max;
}

/*
 * Lets memo_again, near_capture() and near_full() use the last trace, of a capture into an array of @max
 * entries, if it fills the array or leads to the outermost frame, of the stack that ends at @hi, and
 * only its first frame has no slot. Only near_capture() compares words beside the slots.
 * @state: see memo_set_again().
 */
static inline void memo_publish(struct memo *m, uint64_t hi, unsigned int max, uint64_t state)
{
	struct memo_side *s = &m->side[m->last];

	memo_hide(m);
	if ((!m->complete && !memo_is_larger(s, max)) || s->anchor != hi || s->first >= s->end ||
	    (s->nbarrier && s->barrier[s->nbarrier - 1] != s->first))
		return;
	m->now = memo_is_larger(s, max) ? NULL : s;
	if (s->word_first < s->word_end)
		return;
	m->known = s;
	if (s->end - s->first > 1 && max > 1)
		memo_set_again(m, s, max, state);
}

/* Returns how many of the frames of @s behind frame @j are guesses. */
unsigned int memo_count_guessed(const struct memo_side *s, int j);

void memo_join_slow(struct memo_walk *w);

/* Puts the fresh part in front of the frames of the old trace behind @w->met, which all stay. */
static inline void memo_join(struct memo_walk *w)
{
	/* Nothing is new: the capture is at the place of the last one, or in the same loop. */
	if (w->fresh->end - w->fresh->first == 1 && w->met == w->old->first)
		return;
	memo_join_slow(w);
}

/* Makes the fresh part the last trace, because no frame of the old one was met. */
void memo_replace(struct memo_walk *w);

/*
 * Copies frames of the old trace from behind @w->met to the fresh part, up to a frame from which a
 * walk can go on: frame @v or one before it. The step from that frame either restores the frame
 * pointer and does not use the present one (@fp_restored tells this for a pc), or the frame pointer
 * is known and stored in *@fp. Returns the index of that frame, @w->met if there is none, and -1 if
 * there is no room.
 */
int memo_take(struct memo_walk *w, int v, uint64_t *fp, bool (*fp_restored)(uint64_t pc));

#endif
