// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * stack_deep.c - shortens stacks that have more entries than a profile keeps. See stack_deep.h.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/repeats.h"
#include "tools/convert/stack_deep.h"

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

bool deep_fold(struct unwound *deep, struct unwound *ret)
{
	const unsigned int nr = deep->nr;

	deep->nr = repeats_shorten(deep->pcs, deep->marks, nr, ret->max,
				   deep->end == SHSTK_END_COMPLETE);
	if (deep->nr > ret->max)
		return false;
	memcpy(ret->pcs, deep->pcs, deep->nr * sizeof(*deep->pcs));
	memcpy(ret->marks, deep->marks, deep->nr);
	ret->nr = deep->nr;
	ret->end = deep->end;
	ret->elsewhere = deep->elsewhere;
	return ret->nr < nr;
}
