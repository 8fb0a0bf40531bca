// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * stack_outer.c - continues stacks behind their copies with an earlier stack of the thread or with
 * the kernel's callchain. See stack_outer.h.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/convert/stack_outer.h"

void outer_deinit(struct whole_stack *b)
{
	free(b->pcs);
	free(b->sps);
	*b = (struct whole_stack){ 0 };
}

/* Remembers a stack. Without memory it is not remembered. */
static void remember(struct whole_stack *b, const struct unwound *stack)
{
	if (stack->nr > b->max) {
		outer_deinit(b);
		b->pcs = calloc(stack->nr, sizeof(*b->pcs));
		b->sps = calloc(stack->nr, sizeof(*b->sps));
		if (!b->pcs || !b->sps) {
			outer_deinit(b);
			return;
		}
		b->max = stack->nr;
	}
	memcpy(b->pcs, stack->pcs, stack->nr * sizeof(*b->pcs));
	memcpy(b->sps, stack->sps, stack->nr * sizeof(*b->sps));
	b->nr = stack->nr;
}

/*
 * Returns the index of the remembered entry that is equal to the last entry of @stack; @b->nr if
 * there is none.
 */
static unsigned int find_last(const struct whole_stack *b, const struct unwound *stack)
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

static void append(struct unwound *stack, uint64_t pc, uint64_t sp)
{
	stack->pcs[stack->nr] = pc;
	stack->sps[stack->nr] = sp;
	stack->marks[stack->nr++] = SHSTK_MARK_GUESS;
}

/*
 * Returns whether the remembered stack has all entries of @rest, in this order, from entry @from
 * on.
 */
static bool confirms(const struct whole_stack *b, unsigned int from, const uint64_t *rest,
		     size_t nr)
{
	size_t n = 0;

	for (; from < b->nr && n < nr; from++)
		n += b->pcs[from] == rest[n];
	return n == nr;
}

/*
 * Continues the stack with the remembered one, unless the callchain has other entries. Returns
 * whether it did.
 */
static bool complete(const struct whole_stack *b, struct unwound *stack, const uint64_t *rest,
		     size_t nr)
{
	unsigned int from;

	if (stack->nr < 2)
		return false;
	from = find_last(b, stack) + 1;
	if (from >= b->nr || b->nr - from > stack->max - stack->nr || !confirms(b, from, rest, nr))
		return false;
	for (; from < b->nr; from++)
		append(stack, b->pcs[from], b->sps[from]);
	stack->end = SHSTK_END_COMPLETE;
	return true;
}

/*
 * Continues the stack with @nr entries of the callchain. A callchain ends before the first function
 * that keeps no frame record, such as the function of the C library that calls main(). From there
 * on all stacks of a program are the same, so the last entries are taken from another stack.
 */
static void take_rest(struct unwound *stack, const struct mappings *mappings, const uint64_t *rest,
		      size_t nr, bool all)
{
	uint64_t sp = stack->sps[stack->nr - 1];
	const uint64_t *more;
	int n;

	for (size_t i = 0; i < nr && stack->nr < stack->max; i++)
		append(stack, rest[i], sp);
	n = all ? mappings_find_outermost(mappings, rest[nr - 1], &more) : -1;
	if (n < 0 || stack->max - stack->nr < (unsigned int)n)
		return;
	for (int i = 0; i < n; i++)
		append(stack, more[i], sp);
	stack->end = SHSTK_END_COMPLETE;
}

/* Continues a stack that did not fit into the copy. Returns where its outer part is from. */
static enum outer_source continue_stack(const struct whole_stack *b,
					const struct mappings *mappings, struct unwound *stack,
					const struct stack_copy *copy,
					const struct callchain *chain)
{
	const uint64_t *rest = NULL;
	size_t nr = callchain_rest(chain, copy, stack, mappings, &rest);

	if (b->nr && complete(b, stack, rest, nr))
		return OUTER_BEFORE;
	if (!nr || stack->nr == stack->max)
		return OUTER_NOTHING;
	take_rest(stack, mappings, rest, nr,
		  rest + nr == chain->ips + chain->nr && chain->nr < chain->max);
	return OUTER_CALLCHAIN;
}

size_t outer_label(enum outer_source by, char *buf)
{
	static const struct {
		const char *text;
		size_t size;
	} labels[] = {
		[OUTER_BEFORE] = { "outer\0remembered", sizeof("outer\0remembered") },
		[OUTER_CALLCHAIN] = { "outer\0frame-pointers", sizeof("outer\0frame-pointers") },
		[OUTER_READ] = { "outer\0read-twice", sizeof("outer\0read-twice") },
	};

	_Static_assert(sizeof("outer\0frame-pointers") <= OUTER_LABEL, "no room for the label");
	if (by == OUTER_NOTHING)
		return 0;
	memcpy(buf, labels[by].text, labels[by].size);
	return labels[by].size;
}

const char *outer_words(enum outer_source by)
{
	static const char *const words[] = {
		[OUTER_NOTHING] = "",
		[OUTER_BEFORE] =
			"have an outer part that was not copied: it is taken from an earlier sample of the thread",
		[OUTER_CALLCHAIN] =
			"have an outer part that was not copied: it is the one that the kernel found by frame pointers",
		[OUTER_READ] =
			"have an outer part that was not copied: it was read from the process before and after, and was the same",
	};

	return words[by];
}

enum outer_source outer_continue(struct whole_stack *b, struct mappings *mappings,
				 struct unwound *stack, const struct stack_copy *copy,
				 const struct callchain *chain)
{
	enum outer_source by = OUTER_NOTHING;

	if (stack->end == SHSTK_END_COMPLETE && stack->nr)
		mappings_keep_outermost(mappings, stack);
	if (stack->end == SHSTK_END_READ && stack->nr)
		by = continue_stack(b, mappings, stack, copy, chain);
	if (by != OUTER_CALLCHAIN && stack->nr && stack->end == SHSTK_END_COMPLETE &&
	    stack->sps[stack->nr - 1] - stack->sps[0] > copy->size / 2)
		remember(b, stack);
	return by;
}
