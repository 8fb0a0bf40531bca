// SPDX-License-Identifier: LGPL-2.1-or-later
/* ranges.c - sorted ranges of addresses, as ranges.h describes. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "ranges.h"

/* Number of ranges that a search goes back to find one that encloses the address. */
#define BACK_MAX 16

bool shstk_ranges_add(struct shstk_ranges *ranges, struct shstk_account *account, uint64_t lo,
		      uint64_t hi, uint64_t value)
{
	struct shstk_range *v;

	if (!lo || lo >= hi)
		return true;
	v = shstk_account_grow(account, ranges->v, ranges->nr, &ranges->max, sizeof(*v));
	if (!v)
		return false;
	ranges->v = v;
	ranges->v[ranges->nr++] = (struct shstk_range){ lo, hi, value };
	return true;
}

static int by_lo(const void *a, const void *b)
{
	const struct shstk_range *x = a, *y = b;

	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	/* Of two ranges that start together the search meets the smaller one first. */
	if (x->hi != y->hi)
		return x->hi > y->hi ? -1 : 1;
	/* Of two equal ranges the search meets the one with the smaller value first. */
	return x->value > y->value ? -1 : x->value < y->value;
}

void shstk_ranges_sort(struct shstk_ranges *ranges)
{
	if (ranges->nr)
		qsort(ranges->v, ranges->nr, sizeof(*ranges->v), by_lo);
}

const struct shstk_range *shstk_ranges_find(const struct shstk_ranges *ranges, uint64_t addr)
{
	size_t lo = 0, hi = ranges->nr, mid;
	int back;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (ranges->v[mid].lo <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (back = 0; lo-- && back < BACK_MAX; back++)
		if (addr < ranges->v[lo].hi)
			return ranges->v + lo;
	return NULL;
}

void shstk_ranges_deinit(struct shstk_ranges *ranges, struct shstk_account *account)
{
	shstk_account_give(account, ranges->max * sizeof(*ranges->v));
	free(ranges->v);
	memset(ranges, 0, sizeof(*ranges));
}
