/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * rulecache.h - return address to rule, for the whole process.
 *
 * Four-way set-associative, a set to a cache line, and lock-free. An entry is a key
 * and a rule, written under the key RULECACHE_BUSY; a reader takes the rule only
 * between two equal reads of the key. Keys carry a generation: raising it empties the
 * cache. The table starts small, so that few pages and cache lines are touched, and
 * grows when entries are pushed out.
 *
 * Beside it lies the trail, along which long walks go: see RULECACHE_TRAIL.
 */
#ifndef SHSTK_RULECACHE_H
#define SHSTK_RULECACHE_H

#include "native.h"
#include "rule.h"

#define RULECACHE_MAX 65536 /* entries */
#define RULECACHE_MIN 1024
#define RULECACHE_WAYS 4
#define RULECACHE_BUSY 1ull

struct rulecache_entry {
	uint64_t key;
	uint64_t rule;
};

struct rulecache {
	uint64_t mask; /* entries in use - 1; 0: none yet, so that this is no data of the file */
	uint64_t gen; /* in the key's upper 16 bits */
	uint64_t evicted; /* since the table last grew */
	uint64_t filled;
	uint64_t copies; /* ever put into the trail */
	struct rulecache_entry entry[RULECACHE_MAX] __attribute__((aligned(64)));
	struct rulecache_entry trail[NATIVE_RA_FIXED ? RULECACHE_MAX : 1]
		__attribute__((aligned(64)));
};

extern struct rulecache rulecache __attribute__((visibility("hidden")));

/*
 * The low bits of the address: measured on the calls of large libraries they
 * spread as well as any hash, and a walk waits for each step of a hash.
 */
static inline struct rulecache_entry *rulecache_slot(uint64_t pc, uint64_t mask)
{
	uint64_t at = pc << (4 - NATIVE_CODE_SHIFT) & mask * sizeof(rulecache.entry[0]);

	_Static_assert(sizeof(rulecache.entry[0]) == 16, "shift by 4");
	return (struct rulecache_entry *)((uint8_t *)rulecache.entry + at);
}

/* Another entry of the same set. @way: 1, then 2, then 3. */
static inline struct rulecache_entry *rulecache_next(struct rulecache_entry *e, int way)
{
	uintptr_t flip = (way == 2 ? 3 : 1) * sizeof(*e);

	return (struct rulecache_entry *)((uintptr_t)e ^ flip);
}

static inline uint64_t rulecache_gen(void)
{
	return load_relaxed(&rulecache.gen);
}

/* The entry for return address @pc, NULL if there is none. */
static inline struct rulecache_entry *rulecache_find(uint64_t pc, uint64_t gen, uint64_t mask)
{
	struct rulecache_entry *e = rulecache_slot(pc, mask);
	uint64_t key = pc | gen;
	int way;

	for (way = 1; unlikely(load_acquire(&e->key) != key); way++) {
		if (way == RULECACHE_WAYS)
			return NULL;
		e = rulecache_next(e, way);
	}
	return e;
}

/*
 * An entry's rule has two more fields, in bits that no rule of a return address uses.
 *
 * RULECACHE_ODD is the sign bit of cfa_off, which is never negative in a rule. It is clear
 * for most frames: those whose CFA is sp plus a constant and whose saved registers lie
 * between sp and the CFA. For these one comparison shows that all words that the step reads
 * lie inside the stack: that of the CFA with the stack's end.
 *
 * RULECACHE_TRAIL, where NATIVE_RA_FIXED makes ra_off superfluous, is the index of an entry
 * of the trail; 0: none. The trail is an array of copies of entries, in the order in which
 * walks first met them. In an entry of the cache the field leads to the entry's own copy.
 * In a copy it leads to the copy of the return address that came next when a walk last
 * looked for that. A walk along the trail so has the next rule before the next return
 * address is loaded from the stack: the processor computes the next frame with that rule
 * while the load is still under way, and the walk compares the address when it is there.
 * So loads that depend on each other run at the same time, as long as functions are called
 * from where they were called before; and neighbours in the trail share cache lines.
 */
#define RULECACHE_ODD (1ull << 63)
#define RULECACHE_TRAIL_SHIFT 23
#define RULECACHE_TRAIL ((RULECACHE_MAX - 1ull) << RULECACHE_TRAIL_SHIFT)

/* Has the rule in an entry RULECACHE_ODD? */
static inline bool rulecache_is_odd(uint64_t rule)
{
	return (int64_t)rule < 0;
}

/* Is there a rule, and has it not? */
static inline bool rulecache_is_even(uint64_t rule)
{
	return (int64_t)rule > 0;
}

/* What is in @e, whose key was @key; RULE_NONE if it is overwritten. */
static inline uint64_t rulecache_read(const struct rulecache_entry *e, uint64_t key)
{
	uint64_t rule = load_acquire(&e->rule); /* pairs with put(): key, rule, key */

	return likely(load_relaxed(&e->key) == key) ? rule : RULE_NONE;
}

/* The entry of the trail that the rule in an entry leads to. */
static inline struct rulecache_entry *rulecache_trail(uint64_t rule)
{
	uint64_t at = rule >> (RULECACHE_TRAIL_SHIFT - 4) &
		      (RULECACHE_MAX - 1) * sizeof(rulecache.trail[0]);

	return (struct rulecache_entry *)((uint8_t *)rulecache.trail + at);
}

/* Copy @rule, which @e has for @key, to the end of the trail. */
struct rulecache_entry *rulecache_copy(struct rulecache_entry *e, uint64_t key, uint64_t rule);
/* From now on, copy @e leads to copy @caller: its return address came next. */
void rulecache_lead(struct rulecache_entry *e, const struct rulecache_entry *caller);

/* The rule alone, without these fields. */
static inline uint64_t rulecache_rule(uint64_t rule)
{
	rule &= ~RULECACHE_ODD;
	return NATIVE_RA_FIXED ? rule | RULE_RA_AT_ALL : rule;
}

/* The rule for return address @pc, RULE_NONE if it is not there. */
static inline uint64_t rulecache_get(uint64_t pc, uint64_t gen, uint64_t mask)
{
	const struct rulecache_entry *e = rulecache_find(pc, gen, mask);
	uint64_t rule = e ? rulecache_read(e, pc | gen) : RULE_NONE;

	return likely(rule != RULE_NONE) ? rulecache_rule(rule) : RULE_NONE;
}

/*
 * The copy in the trail for return address @pc, NULL if it is not in the cache. @inner,
 * the copy of the frame before, leads to it from now on: if it led nowhere so far, or
 * always if @update.
 */
static inline struct rulecache_entry *rulecache_follow(struct rulecache_entry *inner, uint64_t pc,
						       uint64_t gen, uint64_t mask, bool update)
{
	struct rulecache_entry *e = rulecache_find(pc, gen, mask), *copy;
	uint64_t rule;

	if (unlikely(!e))
		return NULL;
	rule = rulecache_read(e, pc | gen);
	copy = rulecache_trail(rule);
	if (unlikely(load_acquire(&copy->key) != (pc | gen)))
		copy = rulecache_copy(e, pc | gen, rule);
	if (inner && (update || !(load_relaxed(&inner->rule) & RULECACHE_TRAIL)))
		rulecache_lead(inner, copy);
	return copy;
}

/* Enter @rule for @pc; @gen is the generation that was current when it was looked up. */
void rulecache_put(uint64_t pc, uint64_t gen, uint64_t rule);

/* Forget everything. */
void rulecache_flush(void);

#endif
