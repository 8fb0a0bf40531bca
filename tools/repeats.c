// SPDX-License-Identifier: GPL-2.0-or-later
/* repeats.c - finds what a deep recursion repeats in a stack. See repeats.h. */
#include <string.h>

#include "libshstk/shstk.h"
#include "libshstk/symbol/symbol.h"
#include "tools/repeats.h"

_Static_assert(REPEATS_PERIOD <= SHSTK_FUNCTION_REPEATED, "each group must have a name");

#define RUN_MIN 64 /* fewest entries that are worth to be shown once */
#define TIMES_MIN 4

/* Returns how often the first @period entries follow each other. */
static size_t count_times(const uint64_t *pcs, size_t nr, size_t period)
{
	size_t n = period;

	while (n < nr && pcs[n] == pcs[n - period])
		n++;
	return n / period;
}

bool repeats_find(const uint64_t *pcs, size_t nr, struct repeats *ret)
{
	for (unsigned int period = 1; period <= REPEATS_PERIOD; period++) {
		size_t times = count_times(pcs, nr, period);

		if (times < TIMES_MIN || times * period < RUN_MIN)
			continue;
		ret->period = period;
		ret->times = times;
		return true;
	}
	return false;
}

/* The arrays of a stack. */
struct entries {
	uint64_t *pcs;
	uint8_t *marks;
};

static void move(const struct entries *e, unsigned int to, unsigned int from, unsigned int n)
{
	memmove(e->pcs + to, e->pcs + from, n * sizeof(*e->pcs));
	memmove(e->marks + to, e->marks + from, n);
}

/* Sets an entry to one that stands for @period repeated entries, or for others if that is 0. */
static void set(const struct entries *e, unsigned int at, unsigned int period)
{
	e->pcs[at] = SHSTK_FUNCTION_LEFT_OUT + period;
	e->marks[at] = 0;
}

/* Keeps repeated entries once. Returns the number of entries that remain. */
static unsigned int fold(const struct entries *e, unsigned int nr)
{
	unsigned int to = 0;

	for (unsigned int at = 0; at < nr;) {
		struct repeats run = { .period = 1, .times = 1 };
		bool found = repeats_find(e->pcs + at, nr - at, &run);

		move(e, to, at, run.period);
		to += run.period;
		at += run.period * (unsigned int)run.times;
		if (found)
			set(e, to++, run.period);
	}
	return to;
}

/* Keeps both ends of a stack of more than @max entries, and one that stands for its middle. */
static void keep_ends(const struct entries *e, unsigned int nr, unsigned int max)
{
	const unsigned int inner = max / 2, outer = max - inner - 1;

	set(e, inner, 0);
	move(e, inner + 1, nr - outer, outer);
}

unsigned int repeats_shorten(uint64_t *pcs, uint8_t *marks, unsigned int nr, unsigned int max,
			     bool complete)
{
	const struct entries e = { pcs, marks };

	nr = fold(&e, nr);
	if (nr <= max || !complete)
		return nr;
	keep_ends(&e, nr, max);
	return max;
}

bool repeats_fit(uint64_t *pcs, uint8_t *marks, unsigned int *nr, unsigned int max, uint16_t *end)
{
	const unsigned int all = *nr;
	const unsigned int left = repeats_shorten(pcs, marks, all, max, *end == SHSTK_END_COMPLETE);

	*nr = left < max ? left : max;
	if (left > max)
		*end = SHSTK_END_CAPACITY;
	return left < all;
}
