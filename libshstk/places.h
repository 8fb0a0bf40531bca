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
 *	  place is left alone for up to 64 captures;
 *	- a trace that is captured again and again, with no other one between, is left to the memo, where that
 *	  takes half the time.
 *
 * Where the trace differs each time, it may differ in few ways: a program that allocates at the end of one function
 * gets there through some hundred callers. Such a place branches: it has the addresses of the words of its
 * first frames, and what these words say now tells where the trace lies that begins so. All its words are
 * compared, like those of any other one, so what the first ones say may be anything.
 */
#ifndef SHSTK_PLACES_H
#define SHSTK_PLACES_H

#include "call.h"
#include "memo.h"
#include "modmap.h"
#include "rulecache.h"

#define PLACES 512
#define PLACES_ROOM 4096 /* words of all places together */
#define PLACE_MOST 255 /* words of a place */
#define PLACE_PAUSE 6 /* a place is left alone for up to 1 << PLACE_PAUSE captures */
#define PLACE_KEYS 10 /* words that tell the traces of a place which branches */
#define PLACE_BRANCHES UINT8_MAX /* in place.guessed */
#define PLACE_BRANCH_AFTER 3 /* a place branches after so many other traces in a row */
#define PLACE_BRANCH_VAIN 200 /* it is left alone after so many traces in a row that are not kept */
/*
 * A trace that was served PLACE_ROW times in a row is left to the memo for PLACE_LEFT captures: one finds it, the
 * next one finds nothing new in it. Until then the place has cost as much more as the walk that this may take,
 * so that short rows by turns take little longer than they did.
 */
#define PLACE_ROW 32
#define PLACE_LEFT 2

/**
 * struct place - a trace
 * @pc: pc of its innermost frame.
 * @sp: stack pointer of that frame; 0 if there is no trace.
 * @fp: frame pointer of that frame.
 * @fp_mask: ~0 if the trace depends on @fp, 0 if it does not.
 * @state: for modmap_state_is(), as in struct memo_again.
 * @id: identity of the trace; 0: it is not known.
 * @at: number of its first word, counted over all words that were ever kept.
 * @key: if the place branches, @n addresses as distances from places.hi, and no trace.
 * @n: number of frames behind the innermost one; each has a word.
 * @more: number of other words, which follow.
 * @guessed: number of frames that are guesses; PLACE_BRANCHES: the place branches.
 * @misses: captures in a row that found another trace here.
 * @wait: captures for which the place is still left alone.
 * @tag: of several traces of the same place, which one this is: a part of its hash.
 * @next: tag of the place that was seen last, except where the place of @pc and @sp was seen in vain.
 *
 * It is one cache line.
 */
struct place {
	uint64_t pc;
	uint64_t sp;
	union {
		struct {
			uint64_t fp;
			uint64_t fp_mask;
			uint64_t state;
			uint64_t id;
			uint64_t at;
		};
		int32_t key[PLACE_KEYS];
	};
	uint8_t n;
	uint8_t more;
	uint8_t guessed;
	uint8_t misses;
	uint8_t wait;
	uint8_t tag;
	uint16_t next;
};

_Static_assert(sizeof(struct place) == 64, "a cache line");

/**
 * struct places - a thread's traces
 * @hi: end of the stack that all are of.
 * @end: number of words that were ever kept; the last PLACES_ROOM of them are in @raw and @slot.
 * @served: the trace that was served last.
 * @when: struct thread.captures at that time.
 * @row: number of captures in a row that it was the trace of; no more than PLACE_ROW + PLACE_LEFT are counted.
 * @place: the traces, by places_hash().
 * @raw: words, each as it was.
 * @slot: the address of each, as a distance from @hi.
 */
struct places {
	uint64_t hi;
	uint64_t end;
	const struct place *served;
	uint64_t when;
	unsigned int row;
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

static inline bool place_branches(const struct place *x)
{
	return x->guessed == PLACE_BRANCHES;
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
	return !((x->fp ^ c->fp) & x->fp_mask) && modmap_state_is(x->state, rulecache_number()) &&
	       p->hi == hi && place_has_words(p, x) && x->n < c->max;
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

/*
 * Notes that capture number @now has the trace at @x. Returns true if the memo is to make it, because so did
 * the captures before it. memo_repeat() compares four frames at a time, with their frame pointers: at 8 and
 * 32 frames it takes 16 and 24 ns instead of 25 and 49 with frame pointers (EPYC, Zen 3).
 */
static inline bool place_repeats(struct places *p, const struct place *x, uint64_t now)
{
	if (p->served != x || p->when + 1 != now)
		p->row = 0;
	p->served = x;
	p->when = now;
	if (p->row == PLACE_ROW + PLACE_LEFT)
		return false;
	return ++p->row > PLACE_ROW;
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

/* Lets @x branch if it has seen several other traces in a row. Returns whether it does. */
bool place_branch(const struct places *p, struct place *x);

/* Notes that @x, which branches, has not led to the right trace. */
static inline void place_branch_missed(struct place *x)
{
	if (++x->misses < PLACE_BRANCH_VAIN)
		return;
	x->misses /= 2;
	x->wait = UINT8_MAX;
}

/* Returns the hash of the trace to which @x, which branches, leads now. */
uint32_t place_branch_hash(const struct places *p, const struct place *x);

/* Returns the tag of the trace with @hash, which is not 0. */
static inline uint8_t place_tag(uint32_t hash)
{
	return (uint8_t)(hash | 1);
}

/*
 * Returns the element for the trace with @hash to which @x leads: one of two that lie side by side, the one that
 * has it if there is one.
 */
static inline struct place *place_branch_at(struct places *p, const struct place *x, uint32_t hash)
{
	struct place *one = places_at(p, hash), *other = &p->place[(one - p->place) ^ 1];
	const uint8_t tag = place_tag(hash);

	if (likely(place_is(one, x->pc, x->sp) && one->tag == tag))
		return one;
	return !other->sp || (place_is(other, x->pc, x->sp) && other->tag == tag) ? other : one;
}

/*
 * Keeps @s, the trace that capture @c found from frame @j on, at @x, with @c->keep_tag. @id: identity of the trace, or 0.
 * @state: see struct place. A trace is not kept if the return address of @c stands for another one
 * (meant.h), because it may stand for yet another one next time.
 */
void place_keep(struct places *p, struct place *x, const struct call *c, const struct memo_side *s,
		int j, uint64_t id, uint64_t state);

#endif
