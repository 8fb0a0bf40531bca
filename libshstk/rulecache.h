/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * rulecache.h - return address to rule, for the whole process.
 *
 * Four-way set-associative, a set to a cache line, and lock-free. An entry is a key and a rule, written
 * under the key RULECACHE_BUSY; a reader takes the rule only between two equal
 * reads of the key. Keys carry a generation: raising it empties the cache. The
 * table starts small, so that few pages and cache lines are touched, and grows
 * when entries are pushed out.
 */
#ifndef SHSTK_RULECACHE_H
#define SHSTK_RULECACHE_H

#include "native.h"
#include "rule.h"

#define RULECACHE_MAX 65536	/* entries */
#define RULECACHE_MIN 1024
#define RULECACHE_WAYS 4
#define RULECACHE_BUSY 1ull

struct rulecache_entry {
	uint64_t key;
	uint64_t rule;
};

struct rulecache {
	uint64_t mask;		/* entries in use - 1 */
	uint64_t gen;		/* in the key's upper 16 bits */
	uint64_t evicted;	/* since the table last grew */
	uint64_t filled;
	struct rulecache_entry entry[RULECACHE_MAX] __attribute__((aligned(64)));
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
static inline struct rulecache_entry *rulecache_next(struct rulecache_entry *e,
						     int way)
{
	uintptr_t flip = (way == 2 ? 3 : 1) * sizeof(*e);

	return (struct rulecache_entry *)((uintptr_t)e ^ flip);
}

static inline uint64_t rulecache_gen(void)
{
	return load_relaxed(&rulecache.gen);
}

/* The rule for return address @pc, RULE_NONE if it is not there. */
static inline uint64_t rulecache_get(uint64_t pc, uint64_t gen, uint64_t mask)
{
	struct rulecache_entry *e = rulecache_slot(pc, mask);
	uint64_t key = pc | gen;
	uint64_t rule;
	int way;

	for (way = 1; unlikely(load_acquire(&e->key) != key); way++) {
		if (way == RULECACHE_WAYS)
			return RULE_NONE;
		e = rulecache_next(e, way);
	}
	rule = load_acquire(&e->rule);	/* pairs with put(): key, rule, key */
	if (unlikely(load_relaxed(&e->key) != key))
		return RULE_NONE;
	return rule;
}

/* Remember it; @gen is that under which it was found out. */
void rulecache_put(uint64_t pc, uint64_t gen, uint64_t rule);

/* Forget everything. */
void rulecache_flush(void);

#endif
