// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * beyond.c - see beyond.h.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/unwind/beyond.h"

void beyond_deinit(struct beyond *b)
{
	free(b->pcs);
	free(b->sps);
	*b = (struct beyond){ 0 };
}

/* Without memory it is not remembered. */
static void remember(struct beyond *b, const struct unwound *stack)
{
	if (stack->nr > b->max) {
		beyond_deinit(b);
		b->pcs = calloc(stack->nr, sizeof(*b->pcs));
		b->sps = calloc(stack->nr, sizeof(*b->sps));
		if (!b->pcs || !b->sps) {
			beyond_deinit(b);
			return;
		}
		b->max = stack->nr;
	}
	memcpy(b->pcs, stack->pcs, stack->nr * sizeof(*b->pcs));
	memcpy(b->sps, stack->sps, stack->nr * sizeof(*b->sps));
	b->nr = stack->nr;
}

/* The entry of the remembered stack that is the last one of @stack; @b->nr: none. */
static unsigned int find_last(const struct beyond *b, const struct unwound *stack)
{
	unsigned int lo = 0, n = b->nr, last = stack->nr - 1;

	/* Stack pointers ascend. */
	while (n) {
		unsigned int half = n / 2;

		if (b->sps[lo + half] < stack->sps[last]) {
			lo += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	while (lo < b->nr && b->sps[lo] == stack->sps[last] && b->pcs[lo] != stack->pcs[last])
		lo++;
	return lo < b->nr && b->sps[lo] == stack->sps[last] ? lo : b->nr;
}

static bool complete(const struct beyond *b, struct unwound *stack)
{
	unsigned int from;

	if (stack->nr < 2)
		return false;
	from = find_last(b, stack) + 1;
	if (from >= b->nr || b->nr - from > stack->max - stack->nr)
		return false;
	for (; from < b->nr; from++) {
		stack->pcs[stack->nr] = b->pcs[from];
		stack->sps[stack->nr] = b->sps[from];
		stack->marks[stack->nr++] = SHSTK_MARK_GUESS;
	}
	stack->end = SHSTK_END_COMPLETE;
	return true;
}

bool beyond_continue(struct beyond *b, struct unwound *stack, size_t size)
{
	bool completed = stack->end == SHSTK_END_READ && b->nr && complete(b, stack);

	if (stack->nr && stack->end == SHSTK_END_COMPLETE &&
	    stack->sps[stack->nr - 1] - stack->sps[0] > size / 2)
		remember(b, stack);
	return completed;
}
