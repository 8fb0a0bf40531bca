// SPDX-License-Identifier: LGPL-2.1-or-later
/* places.c - keeps and compares a thread's traces at several places; see places.h. */
#include <string.h>

#include "places.h"
#include "verify.h"

void places_clear(struct places *p)
{
	p->hi = 0;
}

static const stack_word *word_at(uint64_t hi, int32_t slot)
{
	return (const stack_word *)(uintptr_t)(hi + (uint64_t)(int64_t)slot);
}

/* Tells whether @n words are what they were. */
static inline no_sanitize bool same_words(uint64_t hi, const int32_t *slot, const uint64_t *raw,
					  int n)
{
	uint64_t differ = 0;
	int i;

	for (i = 0; i < n; i++)
		differ |= *word_at(hi, slot[i]) ^ raw[i];
	return !differ;
}

VERIFY_WIDE no_sanitize bool place_unchanged_wide(const struct places *p, const struct place *x,
						  uint64_t *out)
{
	const uint64_t at = x->at % PLACES_ROOM;
	const int32_t *slot = p->slot + at;
	const uint64_t *raw = p->raw + at;

	return !verify_wide_inline((const uint8_t *)(uintptr_t)p->hi, slot, raw, out, x->n,
				   false) &&
	       same_words(p->hi, slot + x->n, raw + x->n, x->more);
}

no_sanitize bool place_unchanged_any(const struct places *p, const struct place *x, uint64_t *out)
{
	const uint64_t at = x->at % PLACES_ROOM;
	const int32_t *slot = p->slot + at;
	const uint64_t *raw = p->raw + at;

	return !verify_pairs((const uint8_t *)(uintptr_t)p->hi, slot, raw, out, x->n) &&
	       same_words(p->hi, slot + x->n, raw + x->n, x->more);
}

/*
 * Adds the word @val at @addr to @x. Returns false if it does not lie on the stack, or if there is no room.
 * A capture that begins at @sp may read what lies further out.
 */
static bool add_word(struct places *p, struct place *x, uint64_t sp, uint64_t addr, uint64_t val)
{
	const uint64_t i = x->at % PLACES_ROOM + x->n + x->more;

	if (x->n + x->more == PLACE_MOST || addr < sp || addr >= p->hi || p->hi - addr > INT32_MAX)
		return false;
	p->slot[i] = (int32_t)(int64_t)(addr - p->hi);
	p->raw[i] = val;
	x->more++;
	return true;
}

/*
 * Adds the words of saved frame pointers and of steps on which frames of @s behind frame @j depend. Returns
 * false if one cannot be kept.
 */
static bool add_words(struct places *p, struct place *x, uint64_t sp, const struct memo_side *s,
		      int j)
{
	const struct memo_fp *f = s->fp + s->fp_first;
	const struct memo_word *w = s->word + s->word_first;

	for (; f < s->fp + s->fp_end; f++)
		if (f->from > j && f->addr != (uintptr_t)&memo_no_fp &&
		    !add_word(p, x, sp, f->addr, f->val))
			return false;
	for (; w < s->word + s->word_end; w++)
		if (w->frame > j && w->addr != (uintptr_t)memo_word_of(s, w->frame) &&
		    !add_word(p, x, sp, w->addr, w->val))
			return false;
	return true;
}

/* Adds the words of the frames of @s behind frame @j. Returns false if there is no room. */
static bool add_frames(struct places *p, struct place *x, const struct memo_side *s, int j)
{
	const int n = s->end - (j + 1);
	const uint64_t rest = PLACES_ROOM - p->end % PLACES_ROOM;
	uint64_t at;
	int i;

	if (n > PLACE_MOST)
		return false;
	/* The words of a place lie side by side, and may take all the room that one can have. */
	x->at = p->end + (rest < PLACE_MOST ? rest : 0);
	p->end = x->at + PLACE_MOST;
	/* If a signal handler leaves this by longjmp(), no other place may still have these words. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	x->n = (uint8_t)n;
	x->more = 0;
	at = x->at % PLACES_ROOM;
	for (i = 0; i < n; i++) {
		p->slot[at + i] = s->slot[j + 1 + i];
		p->raw[at + i] = s->raw[j + 1 + i];
	}
	return true;
}

/* Takes over the frame pointer @fp, if the frames of @s from frame @j on depend on it. */
static void take_fp(struct place *x, const struct memo_side *s, int j, uint64_t fp)
{
	const struct memo_fp *f = s->fp + s->fp_first;

	while (f->use < j)
		f++;
	x->fp = fp;
	x->fp_mask = f->from <= j ? ~0ull : 0;
}

/* Forgets the traces of another stack. */
static void change_stack(struct places *p, uint64_t hi)
{
	unsigned int i;

	if (likely(p->hi == hi))
		return;
	for (i = 0; i < PLACES; i++)
		p->place[i].sp = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	p->hi = hi;
}

/* Writes to @x the trace that place_keep() is to keep. Returns false if there is no room. */
static bool put(struct places *p, struct place *x, const struct call *c, const struct memo_side *s,
		int j)
{
	const unsigned int guessed = memo_count_guessed(s, j);

	if (guessed >= PLACE_BRANCHES || !add_frames(p, x, s, j) || !add_words(p, x, c->sp, s, j))
		return false;
	p->end = x->at + x->n + x->more;
	take_fp(x, s, j, c->fp);
	x->guessed = (uint8_t)guessed;
	return true;
}

bool place_branch(const struct places *p, struct place *x)
{
	const uint64_t at = x->at % PLACES_ROOM, sp = x->sp;
	const int n = min(x->n, PLACE_KEYS);

	if (x->misses < PLACE_BRANCH_AFTER || !n || !place_has_words(p, x))
		return false;
	/* If a signal handler leaves this by longjmp(), the place is gone. */
	x->sp = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	memcpy(x->key, p->slot + at, n * sizeof(*x->key));
	x->n = (uint8_t)n;
	x->guessed = PLACE_BRANCHES;
	x->misses = x->wait = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	x->sp = sp;
	return true;
}

no_sanitize uint32_t place_branch_hash(const struct places *p, const struct place *x)
{
	/* Random odd numbers: sums of words that differ in two places must differ, too. */
	static const uint64_t factor[PLACE_KEYS] = {
		0xf2a74de452e6b439, 0x6513270e269e0d37, 0x0c5c7fd0a6a3a451, 0xd23f0824128b2f33,
		0x1818e811892f902b, 0x9531985d5d9dc9f9, 0xe8e25d940ed90475, 0x36f675cc81e74ef5,
		0x1600a35a099950d9, 0x6b0d549b6f03675b,
	};
	uint64_t sum = x->pc ^ x->sp << 20;
	int i;

	for (i = 0; i < x->n; i++)
		sum += *word_at(p->hi, x->key[i]) * factor[i];
	return (uint32_t)((sum ^ sum >> 29) * 0x9e3779b97f4a7c15ull >> 32);
}

void place_keep(struct places *p, struct place *x, const struct call *c, const struct memo_side *s,
		int j, uint64_t id, uint64_t state)
{
	const uint64_t pc = native_strip(c->ra);

	if (native_strip(s->raw[j]) != pc)
		return;
	if (!place_is(x, pc, c->sp) || place_branches(x))
		x->misses = x->wait = 0;
	/* If a signal handler leaves this by longjmp(), there is no trace. */
	x->sp = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	change_stack(p, s->anchor);
	x->guessed = 0;
	if (!put(p, x, c, s, j))
		x->at = p->end - PLACES_ROOM - 1; /* lost, so that it is seldom tried again */
	x->pc = pc;
	x->tag = c->keep_tag;
	x->state = state;
	x->id = id;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	x->sp = c->sp;
}
