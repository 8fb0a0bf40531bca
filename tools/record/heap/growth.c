// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * growth.c - compares the memory in use of each stack with that at the snapshot before. See
 * growth.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "tools/record/heap/growth.h"

static int by_counter(const void *a, const void *b)
{
	const struct in_use *x = a, *y = b;

	return x->counter < y->counter ? -1 : x->counter > y->counter;
}

int growth_take(struct growth *g, const struct in_use *now, struct in_use *more)
{
	const struct in_use *before = NULL;

	if (g->nr_now == g->max_now) {
		size_t max = g->max_now ? 2 * g->max_now : 256;
		struct in_use *list = reallocarray(g->now, max, sizeof(*list));

		if (!list)
			return -ENOMEM;
		g->now = list;
		g->max_now = max;
	}
	g->now[g->nr_now++] = *now;
	if (g->nr_before)
		before = bsearch(now, g->before, g->nr_before, sizeof(*now), by_counter);
	*more = *now;
	if (!before)
		return 0;
	more->objects -= before->objects;
	more->bytes -= before->bytes;
	return 0;
}

void growth_turn(struct growth *g)
{
	struct in_use *now = g->now;
	size_t nr = g->nr_now;

	if (nr)
		qsort(now, nr, sizeof(*now), by_counter);
	free(g->before);
	*g = (struct growth){ .before = now, .nr_before = nr };
}

void growth_deinit(struct growth *g)
{
	free(g->before);
	free(g->now);
	*g = (struct growth){ 0 };
}
