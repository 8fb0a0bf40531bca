/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * places.h - a thread's traces at the places where it captures again and again; see
 * Documentation/design.rst, "The software shadow stack".
 *
 * The memo (memo.h) has the last trace only. A program that allocates at a handful of places by turns
 * finds there a trace that differs in some frames each time. So traces of up to PLACES places are
 * kept as well, each with all the words that its walk depended on. A place is the frame in which a capture
 * begins: its pc and its stack pointer. If a capture begins there again, and all words are the same, so is
 * the trace.
 *
 * Comparing and keeping must not cost more than they save:
 *
 *	- a trace is kept when a place is seen for the second time since another one was seen that would lie
 *	  in the same element;
 *	- where the trace differs each time, cannot be kept or is soon lost because there are too many, the
 *	  place is left alone for up to 64 captures.
 */
#ifndef SHSTK_PLACES_H
#define SHSTK_PLACES_H

#include "call.h"
#include "memo.h"
#include "modmap.h"
#include "rulecache.h"

#define PLACES 256
#define PLACES_ROOM 2048 /* words of all places together */
#define PLACE_MOST 255 /* words of a place */
#define PLACE_PAUSE 6 /* a place is left alone for up to 1 << PLACE_PAUSE captures */

/**
 * struct place - a trace
 * @pc: pc of its innermost frame.
 * @sp: stack pointer of that frame; 0 if there is no trace.
 * @fp: frame pointer of that frame.
 * @fp_mask: ~0 if the trace depends on @fp, 0 if it does not.
 * @state: for modmap_state_is(), as in struct memo_again.
 * @id: identity of the trace; 0: it is not known.
 * @at: number of its first word, counted over all words that were ever kept.
 * @n: number of frames behind the innermost one; each has a word.
 * @more: number of other words, which follow.
 * @guessed: number of frames that are guesses.
 * @misses: captures in a row that found another trace here.
 * @wait: captures for which the place is still left alone.
 * @next: tag of the place that was seen last, except where the place of @pc and @sp was seen in vain.
 */
struct place {
	uint64_t pc;
	uint64_t sp;
	uint64_t fp;
	uint64_t fp_mask;
	uint64_t state;
	uint64_t id;
	uint64_t at;
	uint16_t n;
	uint8_t more;
	uint8_t guessed;
	uint8_t misses;
	uint8_t wait;
	uint16_t next;
};

/**
 * struct places - a thread's traces
 * @hi: end of the stack that all are of.
 * @rounds: rulecache.rounds when they were kept: a place may be seen again after so long that the
 *	generation in its @state has come again.
 * @end: number of words that were ever kept; the last PLACES_ROOM of them are in @raw and @slot.
 * @place: the traces, by places_hash().
 * @raw: words, each as it was.
 * @slot: the address of each, as a distance from @hi.
 */
struct places {
	uint64_t hi;
	uint64_t rounds;
	uint64_t end;
	struct place place[PLACES] __attribute__((aligned(64)));
	uint64_t raw[PLACES_ROOM];
	int32_t slot[PLACES_ROOM];
};

/* Forgets all traces. */
void places_clear(struct places *p);

/* Returns a hash of a place: the element of struct places.place in its upper bits, a tag in its lower ones. */
static inline uint32_t places_hash(uint64_t pc, uint64_t sp)
{
	return (uint32_t)(((pc ^ sp << 20) * 0x9e3779b97f4a7c15ull) >> 32);
}

static inline struct place *places_at(struct places *p, uint32_t hash)
{
	return &p->place[hash / (UINT32_MAX / PLACES + 1)];
}

/* Tells whether @x is the place with @pc and @sp. */
static inline bool place_is(const struct place *x, uint64_t pc, uint64_t sp)
{
	return x->sp == sp && x->pc == pc;
}

/* Tells whether the words of @x are still there. */
static inline bool place_has_words(const struct places *p, const struct place *x)
{
	return p->end - x->at <= PLACES_ROOM;
}

/* Tells whether @x, which is the place of @c, can have the trace of @c, on the stack that ends at @hi. */
static inline bool place_serves(const struct places *p, const struct place *x, const struct call *c,
				uint64_t hi)
{
	return !((x->fp ^ c->fp) & x->fp_mask) && modmap_state_is(x->state, rulecache_gen()) &&
	       p->hi == hi && p->rounds == load_relaxed(&rulecache.rounds) &&
	       place_has_words(p, x) && x->n < c->max;
}

/* These do what place_unchanged() does, on CPUs that verify_wide() is for, and on any CPU. */
bool place_unchanged_wide(const struct places *p, const struct place *x, uint64_t *out);
bool place_unchanged_any(const struct places *p, const struct place *x, uint64_t *out);

/*
 * Returns true if no word of @x has changed. Writes the pcs of the frames behind the innermost one to
 * @out, also where it returns false.
 */
static inline bool place_unchanged(const struct places *p, const struct place *x, uint64_t *out)
{
	return likely(verify_is_wide()) ? place_unchanged_wide(p, x, out) :
					  place_unchanged_any(p, x, out);
}

/* Notes that the trace at @x, the place with @hash, was the right one. */
static inline void place_served(struct place *x, uint32_t hash)
{
	x->misses = 0;
	x->next = (uint16_t)hash;
}

/* Notes that the trace at @x was another one, or is lost. */
static inline void place_missed(struct place *x)
{
	x->wait = (uint8_t)(1u << x->misses);
	x->misses += x->misses < PLACE_PAUSE;
}

/* Notes that the place with @hash was seen, which @x is not. Returns true if @x is to become that place. */
static inline bool place_seen(struct place *x, uint32_t hash)
{
	bool again = x->next == (uint16_t)hash;

	x->next = (uint16_t)hash;
	return again;
}

/*
 * Keeps @s, the trace that capture @c found from frame @j on, at @x. @id: identity of the trace, or 0.
 * @state: see struct place. A trace is not kept if the return address of @c stands for another one
 * (meant.h), because it may stand for yet another one next time.
 */
void place_keep(struct places *p, struct place *x, const struct call *c, const struct memo_side *s,
		int j, uint64_t id, uint64_t state);

#endif
