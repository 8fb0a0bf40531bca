/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * rulecache.h - the cache of unwind rules by return address, for the whole process.
 *
 * The cache is lock-free and four-way set-associative, with one set in each cache
 * line. An entry is a key and a rule. While it is written its key is RULECACHE_BUSY;
 * a reader uses the rule only if the key is the same before and after the read. Keys
 * carry a generation: raising it empties the cache. The table starts small, so that
 * few pages and cache lines are touched, and grows when entries are pushed out.
 *
 * Beside the cache lies the trail, which speeds up long walks: see RULECACHE_TRAIL.
 */
#ifndef SHSTK_RULECACHE_H
#define SHSTK_RULECACHE_H

#include "native.h"
#include "rule.h"

#define RULECACHE_MAX 65536 /* most entries */
#define RULECACHE_MIN 1024 /* entries of the table when it is first used */
#define RULECACHE_WAYS 4 /* entries of a set */
#define RULECACHE_BUSY 1ull /* the key of an entry that is being written */

struct rulecache_entry {
	uint64_t key;
	uint64_t rule;
};

struct rulecache {
	uint64_t mask; /* entries of the table - 1; it starts as 0, so that all of this is .bss */
	uint64_t number; /* the generation, and how often generations began again: see rulecache_number() */
	uint64_t evicted; /* entries pushed out since the table last grew */
	uint64_t filled; /* entries that have been used */
	uint64_t copies; /* copies that were ever put into the trail */
	struct rulecache_entry entry[RULECACHE_MAX] __attribute__((aligned(64)));
	struct rulecache_entry trail[NATIVE_RA_FIXED ? RULECACHE_MAX : 1]
		__attribute__((aligned(64)));
};

extern struct rulecache rulecache __attribute__((visibility("hidden")));

/*
 * Returns the first entry to look at for @pc. Its place is the low bits of the address:
 * measured on the calls of large libraries they spread as well as any hash, and a walk
 * would have to wait for each step of a hash.
 */
static inline struct rulecache_entry *rulecache_slot(uint64_t pc, uint64_t mask)
{
	uint64_t at = pc << (4 - NATIVE_CODE_SHIFT) & mask * sizeof(rulecache.entry[0]);

	_Static_assert(sizeof(rulecache.entry[0]) == 16, "shift by 4");
	return (struct rulecache_entry *)((uint8_t *)rulecache.entry + at);
}

/* Returns another entry of the set of @e. @way is 1 in the first call, then 2, then 3. */
static inline struct rulecache_entry *rulecache_next(struct rulecache_entry *e, int way)
{
	uintptr_t flip = (way == 2 ? 3 : 1) * sizeof(*e);

	return (struct rulecache_entry *)((uintptr_t)e ^ flip);
}

#define RULECACHE_GEN (1ull << 48) /* the first bit of a generation */
#define RULECACHE_ROUND (1ull << 24) /* the first bit of how often they began again */

/*
 * Returns the number of the generation, which no other one ever has: for what is kept where flushing
 * the cache does not reach.
 */
static inline uint64_t rulecache_number(void)
{
	return load_relaxed(&rulecache.number);
}

/* Returns the generation with @number as it is in keys, where it comes again after 65536 others. */
static inline uint64_t rulecache_gen_of(uint64_t number)
{
	return number & ~(RULECACHE_GEN - 1);
}

static inline uint64_t rulecache_gen(void)
{
	return rulecache_gen_of(rulecache_number());
}

/* Empties the entry that has @key, unless another thread is writing it, which must go on having it alone. */
static inline void rulecache_empty(uint64_t *key)
{
	uint64_t old = load_relaxed(key);

	if (old != RULECACHE_BUSY)
		__atomic_compare_exchange_n(key, &old, 0, false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED);
}

/* Returns the entry for @key in the set of @e, where @e does not have it; NULL if none has it. */
static inline struct rulecache_entry *rulecache_search(struct rulecache_entry *e, uint64_t key)
{
	int way;

	for (way = 1; way < RULECACHE_WAYS; way++) {
		e = rulecache_next(e, way);
		if (load_acquire(&e->key) == key)
			return e;
	}
	return NULL;
}

/* Returns the entry for return address @pc, or NULL if there is none. */
static inline struct rulecache_entry *rulecache_find(uint64_t pc, uint64_t gen, uint64_t mask)
{
	struct rulecache_entry *e = rulecache_slot(pc, mask);
	uint64_t key = pc | gen;

	return likely(load_acquire(&e->key) == key) ? e : rulecache_search(e, key);
}

/*
 * The rule in an entry has two more fields, in bits that a rule of a return address does
 * not use.
 *
 * RULECACHE_ODD is the sign bit of cfa_off, which is never negative in a rule. The bit is
 * clear for most frames: those whose CFA is sp plus a constant and whose saved registers
 * lie between sp and the CFA. For these frames a single comparison, of the CFA with the
 * stack's end, shows that all words that the step reads lie inside the stack.
 *
 * RULECACHE_TRAIL is the index of an entry of the trail; 0: none. It takes the place of
 * ra_off, which is not needed where NATIVE_RA_FIXED. The trail is an array of copies of
 * entries, in the order in which walks first met them. In an entry of the cache, the field
 * leads to the entry's own copy. In a copy, it leads to the copy of the return address that
 * came next when a walk last looked for the next one. So a walk along the trail has the
 * next rule before the next return address is loaded from the stack: the processor computes
 * the next frame with that rule while the load is still under way, and the walk compares
 * the address when it has arrived. Loads that depend on each other then run at the same
 * time, as long as functions are called from where they were called before. Neighbours in
 * the trail also share cache lines.
 */
#define RULECACHE_ODD (1ull << 63)
#define RULECACHE_TRAIL_SHIFT 23
#define RULECACHE_TRAIL ((RULECACHE_MAX - 1ull) << RULECACHE_TRAIL_SHIFT)

/* Tells whether @rule, from an entry, has RULECACHE_ODD. */
static inline bool rulecache_is_odd(uint64_t rule)
{
	return (int64_t)rule < 0;
}

/* Tells whether @rule, from an entry, is a rule and does not have RULECACHE_ODD. */
static inline bool rulecache_is_even(uint64_t rule)
{
	return (int64_t)rule > 0;
}

/* Returns the rule in @e, whose key was @key, or RULE_NONE if @e was overwritten. */
static inline uint64_t rulecache_read(const struct rulecache_entry *e, uint64_t key)
{
	uint64_t rule = load_acquire(&e->rule); /* pairs with replace(): key, rule, key */

	return likely(load_relaxed(&e->key) == key) ? rule : RULE_NONE;
}

/* Returns the entry of the trail that @rule, from an entry, leads to. */
static inline struct rulecache_entry *rulecache_trail(uint64_t rule)
{
	uint64_t at = rule >> (RULECACHE_TRAIL_SHIFT - 4) &
		      (RULECACHE_MAX - 1) * sizeof(rulecache.trail[0]);

	return (struct rulecache_entry *)((uint8_t *)rulecache.trail + at);
}

/*
 * Copies @rule, which @e has for @key, to the end of the trail. Returns the copy, or @e if there
 * is no copy.
 */
struct rulecache_entry *rulecache_copy(struct rulecache_entry *e, uint64_t key, uint64_t rule);
/* Lets copy @e lead to copy @caller, whose return address came next. */
void rulecache_lead(struct rulecache_entry *e, const struct rulecache_entry *caller);

/* Returns @rule, from an entry, without the two fields that only entries have. */
static inline uint64_t rulecache_rule(uint64_t rule)
{
	rule &= ~RULECACHE_ODD;
	return NATIVE_RA_FIXED ? rule | RULE_RA_AT_ALL : rule;
}

/* Returns the rule for return address @pc, or RULE_NONE if it is not in the cache. */
static inline uint64_t rulecache_get(uint64_t pc, uint64_t gen, uint64_t mask)
{
	const struct rulecache_entry *e = rulecache_find(pc, gen, mask);
	uint64_t rule = e ? rulecache_read(e, pc | gen) : RULE_NONE;

	return likely(rule != RULE_NONE) ? rulecache_rule(rule) : RULE_NONE;
}

/*
 * Returns the copy in the trail for return address @pc, or NULL if @pc is not in the cache.
 * @inner is the copy of the frame before, or NULL: it leads to the returned copy from now
 * on if it led nowhere so far, or if @update is set.
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

/* Enters @rule for @pc. @gen is the generation that was current when the rule was looked up. */
void rulecache_put(uint64_t pc, uint64_t gen, uint64_t rule);

/* Empties the cache by raising the generation. */
void rulecache_flush(void);

#endif
