// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * stack_deep.c - shortens stacks that have more entries than a profile keeps. See stack_deep.h.
 */
#include <stdlib.h>
#include <string.h>

#include "libshstk/symbol/symbol.h"
#include "tools/convert/repeats.h"
#include "tools/convert/stack_deep.h"

_Static_assert(REPEATS_PERIOD <= SHSTK_FUNCTION_REPEATED, "each group must have a name");

/*
 * Entries of a deep stack. The largest copy has no more than half of that; the rest is for what is
 * read of the process. It takes about a millisecond to unwind so many.
 */
#define DEEP_MAX 16384

bool deep_init(struct unwound *deep)
{
	*deep = (struct unwound){ .max = DEEP_MAX };
	deep->pcs = malloc(DEEP_MAX * (2 * sizeof(uint64_t) + 1));
	if (!deep->pcs)
		return false;
	deep->sps = deep->pcs + DEEP_MAX;
	deep->marks = (uint8_t *)(deep->sps + DEEP_MAX);
	return true;
}

void deep_deinit(struct unwound *deep)
{
	/* The other arrays are behind this one. */
	free(deep->pcs);
}

static void move(struct unwound *s, unsigned int to, unsigned int from, unsigned int n)
{
	memmove(s->pcs + to, s->pcs + from, n * sizeof(*s->pcs));
	memmove(s->marks + to, s->marks + from, n);
}

/* Sets an entry to one that stands for @period repeated entries, or for others if that is 0. */
static void set(struct unwound *s, unsigned int at, unsigned int period)
{
	s->pcs[at] = SHSTK_FUNCTION_LEFT_OUT + period;
	s->marks[at] = 0;
}

/* Keeps repeated entries once. */
static void fold_repeats(struct unwound *s)
{
	unsigned int to = 0;

	for (unsigned int at = 0; at < s->nr;) {
		struct repeats run = { .period = 1, .times = 1 };
		bool found = repeats_find(s->pcs + at, s->nr - at, &run);

		move(s, to, at, run.period);
		to += run.period;
		at += run.period * (unsigned int)run.times;
		if (found)
			set(s, to++, run.period);
	}
	s->nr = to;
}

/* Keeps both ends of a stack of more than @max entries, and one that stands for its middle. */
static void keep_ends(struct unwound *s, unsigned int max)
{
	const unsigned int inner = max / 2, outer = max - inner - 1;

	set(s, inner, 0);
	move(s, inner + 1, s->nr - outer, outer);
	s->nr = max;
}

bool deep_fold(struct unwound *deep, struct unwound *ret)
{
	const unsigned int nr = deep->nr;

	fold_repeats(deep);
	if (deep->nr > ret->max && deep->end != SHSTK_END_COMPLETE)
		return false;
	if (deep->nr > ret->max)
		keep_ends(deep, ret->max);
	memcpy(ret->pcs, deep->pcs, deep->nr * sizeof(*deep->pcs));
	memcpy(ret->marks, deep->marks, deep->nr);
	ret->nr = deep->nr;
	ret->end = deep->end;
	ret->elsewhere = deep->elsewhere;
	return ret->nr < nr;
}
