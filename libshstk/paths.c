// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * paths.c - the cache of rules that the paths of functions lead to; see paths.h.
 */
#include "paths.h"
#include "rulecache.h"

#define ENTRIES 1024

/* An entry is one cache line. Its key is one like those of rulecache.h. */
struct paths_entry {
	uint64_t key;
	uint64_t counts; /* paths.n in the lower half, paths.lost in the upper half */
	uint64_t rule[PATHS_MOST];
};

static struct paths_entry entries[ENTRIES] __attribute__((aligned(64)));

static struct paths_entry *entry_of(uint64_t pc)
{
	return &entries[(pc ^ pc >> 10) % ENTRIES];
}

bool paths_add(struct paths *p, uint64_t rule, bool lost_fp)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (p->rule[i] == rule && (p->lost >> i & 1) == lost_fp)
			return true;
	if (p->n == PATHS_MOST) {
		p->n = PATHS_MANY;
		return false;
	}
	p->rule[p->n] = rule;
	p->lost |= (uint32_t)lost_fp << p->n++;
	return true;
}

bool paths_find(uint64_t pc, uint64_t gen, struct paths *ret)
{
	const struct paths_entry *e = entry_of(pc);
	uint64_t counts;

	if (load_acquire(&e->key) != (pc | gen))
		return false;
	counts = load_acquire(&e->counts);
	ret->n = (uint32_t)counts;
	ret->lost = (uint32_t)(counts >> 32);
	for (unsigned int i = 0; i < PATHS_MOST; i++)
		ret->rule[i] = load_acquire(&e->rule[i]);
	/* Pairs with paths_keep(), which stores to the key before and after everything else. */
	return load_relaxed(&e->key) == (pc | gen);
}

void paths_keep(uint64_t pc, uint64_t gen, const struct paths *p)
{
	struct paths_entry *e = entry_of(pc);
	uint64_t old = load_relaxed(&e->key);

	/* An address with bits in the place of the generation can have no key. */
	if (pc >> 48 || old == RULECACHE_BUSY ||
	    !__atomic_compare_exchange_n(&e->key, &old, RULECACHE_BUSY, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		return;
	store_release(&e->counts, p->n | (uint64_t)p->lost << 32);
	for (unsigned int i = 0; i < PATHS_MOST; i++)
		store_release(&e->rule[i], i < p->n && p->n <= PATHS_MOST ? p->rule[i] : 0);
	store_release(&e->key, pc | gen);
}

void paths_clear(void)
{
	for (unsigned int i = 0; i < ENTRIES; i++)
		rulecache_empty(&entries[i].key);
}

#define PLACES 256
#define PAGE_SHIFT 12 /* a larger page counts as several pages of this size */

/*
 * Pages without code. Each word holds the number of a page from bit 8 on, and in the lowest 8 bits
 * how many more times the answer may be used.
 */
static uint64_t places[PLACES];

bool paths_no_code(uint64_t pc)
{
	uint64_t page = pc >> PAGE_SHIFT, *place = &places[page % PLACES];
	uint64_t is = load_relaxed(place);

	if (is >> 8 != page || !(is & 0xff))
		return false;
	/* If another thread counts down at the same time, one of the two may be lost. */
	store_relaxed(place, is - 1);
	return true;
}

void paths_saw_no_code(uint64_t pc)
{
	uint64_t page = pc >> PAGE_SHIFT;

	store_relaxed(&places[page % PLACES], page << 8 | PATHS_ANSWERS);
}
