// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * rulecache.c - fills and empties the cache of unwind rules; see rulecache.h.
 */
#include "paths.h"
#include "rulecache.h"

struct rulecache rulecache;

/* Writes an entry whose key is @old. Returns false if another thread has changed it. */
static bool replace(struct rulecache_entry *e, uint64_t old, uint64_t key, uint64_t rule)
{
	if (!__atomic_compare_exchange_n(&e->key, &old, RULECACHE_BUSY, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		return false;
	store_release(&e->rule, rule);
	store_release(&e->key, key);
	return true;
}

static void grow(uint64_t mask)
{
	uint64_t larger = mask ? 2 * mask + 1 : RULECACHE_MIN - 1;

	if (mask + 1 >= RULECACHE_MAX)
		return;
	store_relaxed(&rulecache.evicted, 0);
	__atomic_compare_exchange_n(&rulecache.mask, &mask, larger, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
}

/* Returns @rule as an entry holds it: with RULECACHE_ODD if it is odd, without a fixed ra_off. */
static uint64_t pack(uint64_t rule)
{
	int64_t cfa = rule_cfa_off(rule), ra = native_ra_off(rule);
	int64_t fp = rule & RULE_FP_SAVED ? rule_fp_off(rule) : ra;

	if (RULE_KIND(rule) != RULE_SP || !(rule & RULE_RA_SAVED) || min(ra, fp) < -cfa ||
	    max(ra, fp) > -8)
		rule |= RULECACHE_ODD;
	return NATIVE_RA_FIXED ? rule & ~RULE_RA_AT_ALL : rule;
}

void rulecache_put(uint64_t pc, uint64_t gen, uint64_t rule)
{
	uint64_t mask = load_relaxed(&rulecache.mask);
	struct rulecache_entry *e;
	uint64_t old, evicted;
	int i;

	if (pc >= RULECACHE_GEN || rule & RULECACHE_ODD)
		return;
	if (!mask) {
		grow(0);
		mask = load_relaxed(&rulecache.mask);
	}
	e = rulecache_slot(pc, mask);
	rule = pack(rule);
	for (i = 1; i <= RULECACHE_WAYS; i++) {
		old = load_relaxed(&e->key);
		if (old == (pc | gen))
			return;
		if (old != RULECACHE_BUSY && (!old || (old & ~(RULECACHE_GEN - 1)) != gen)) {
			if (replace(e, old, pc | gen, rule) && !old)
				__atomic_fetch_add(&rulecache.filled, 1, __ATOMIC_RELAXED);
			return;
		}
		e = rulecache_next(e, i);
	}
	/* All entries of the set are taken. A different one of them is replaced each time. */
	evicted = __atomic_add_fetch(&rulecache.evicted, 1, __ATOMIC_RELAXED);
	for (i = 1; i <= (int)(evicted % RULECACHE_WAYS); i++)
		e = rulecache_next(e, i);
	old = load_relaxed(&e->key);
	if (old != RULECACHE_BUSY)
		replace(e, old, pc | gen, rule);
	if (evicted > (mask + 1) / 8)
		grow(mask);
}

/* Lets @e, if its key is still @key, lead to @copy. */
static void lead(struct rulecache_entry *e, uint64_t key, const struct rulecache_entry *copy)
{
	uint64_t at = copy - rulecache.trail, rule;

	if (key == RULECACHE_BUSY ||
	    !__atomic_compare_exchange_n(&e->key, &key, RULECACHE_BUSY, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		return;
	rule = load_relaxed(&e->rule) & ~RULECACHE_TRAIL;
	store_release(&e->rule, rule | at << RULECACHE_TRAIL_SHIFT);
	store_release(&e->key, key);
}

struct rulecache_entry *rulecache_copy(struct rulecache_entry *e, uint64_t key, uint64_t rule)
{
	struct rulecache_entry *copy;
	uint64_t at, old;

	if (!NATIVE_RA_FIXED || rule == RULE_NONE)
		return e;
	at = __atomic_add_fetch(&rulecache.copies, 1, __ATOMIC_RELAXED);
	copy = &rulecache.trail[at % RULECACHE_MAX];
	old = load_relaxed(&copy->key);
	/* Index 0 means "none". When the trail is full, the oldest copy is replaced. */
	if (copy == rulecache.trail || old == RULECACHE_BUSY ||
	    !replace(copy, old, key, rule & ~RULECACHE_TRAIL))
		return e;
	lead(e, key, copy);
	return copy;
}

void rulecache_lead(struct rulecache_entry *e, const struct rulecache_entry *caller)
{
	/* @e may hold another copy by now: at worst the next walk has to look for the right one. */
	if (caller >= rulecache.trail && caller < rulecache.trail + RULECACHE_MAX)
		lead(e, load_relaxed(&e->key), caller);
}

/* Begins the next generation. Returns whether it is the first one of a half of all of them. */
static bool next_generation(void)
{
	uint64_t old = rulecache_number(), new;

	do {
		new = old + RULECACHE_GEN;
		if (!rulecache_gen_of(new))
			new += RULECACHE_ROUND;
	} while (!__atomic_compare_exchange_n(&rulecache.number, &old, new, true, __ATOMIC_ACQ_REL,
					      __ATOMIC_RELAXED));
	return !(rulecache_gen_of(new) << 1);
}

void rulecache_flush(void)
{
	uint64_t i;

	if (!next_generation())
		return;
	/*
	 * After 65536 generations they repeat, so old keys must not stay in the tables. They go twice as
	 * often: then none is there any more when its generation comes again, neither one that another
	 * thread put late, after the tables were emptied, nor one that it finds before they are.
	 */
	paths_clear();
	for (i = 0; i < RULECACHE_MAX; i++)
		rulecache_empty(&rulecache.entry[i].key);
	for (i = 0; i < ARRAY_SIZE(rulecache.trail); i++)
		rulecache_empty(&rulecache.trail[i].key);
}
