// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * rulecache.c - fill and empty the cache of rules; see rulecache.h.
 */
#include "rulecache.h"

struct rulecache rulecache = { .mask = RULECACHE_MIN - 1 };

#define GEN_ONE (1ull << 48)

/* Write an entry unless somebody else is at it. */
static bool replace(struct rulecache_entry *e, uint64_t old, uint64_t key,
		    uint64_t rule)
{
	if (!__atomic_compare_exchange_n(&e->key, &old, RULECACHE_BUSY, false,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return false;
	store_release(&e->rule, rule);
	store_release(&e->key, key);
	return true;
}

static void grow(uint64_t mask)
{
	if (mask + 1 >= RULECACHE_MAX)
		return;
	store_relaxed(&rulecache.evicted, 0);
	__atomic_compare_exchange_n(&rulecache.mask, &mask, 2 * mask + 1, false,
				    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void rulecache_put(uint64_t pc, uint64_t gen, uint64_t rule)
{
	uint64_t mask = load_relaxed(&rulecache.mask);
	struct rulecache_entry *e = rulecache_slot(pc, mask);
	uint64_t old, evicted;
	int i;

	if (pc >= GEN_ONE)
		return;
	for (i = 1; i <= RULECACHE_WAYS; i++) {
		old = load_relaxed(&e->key);
		if (old == (pc | gen))
			return;
		if (old != RULECACHE_BUSY && (!old || (old & ~(GEN_ONE - 1)) != gen)) {
			if (replace(e, old, pc | gen, rule) && !old)
				__atomic_fetch_add(&rulecache.filled, 1,
						   __ATOMIC_RELAXED);
			return;
		}
		e = rulecache_next(e, i);
	}
	/* All ways taken. The one that goes is another one each time. */
	evicted = __atomic_add_fetch(&rulecache.evicted, 1, __ATOMIC_RELAXED);
	for (i = 1; i <= (int)(evicted % RULECACHE_WAYS); i++)
		e = rulecache_next(e, i);
	old = load_relaxed(&e->key);
	if (old != RULECACHE_BUSY)
		replace(e, old, pc | gen, rule);
	if (evicted > (mask + 1) / 8)
		grow(mask);
}

void rulecache_flush(void)
{
	uint64_t gen = __atomic_add_fetch(&rulecache.gen, GEN_ONE,
					  __ATOMIC_ACQ_REL);
	uint64_t i;

	if (gen)
		return;
	/* 65536 generations: no old key may come to life again. */
	for (i = 0; i < RULECACHE_MAX; i++)
		store_relaxed(&rulecache.entry[i].key, 0);
}
