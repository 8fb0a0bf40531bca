// SPDX-License-Identifier: GPL-2.0-or-later
/* told.c - tells a profile by how much the values of stacks have changed. See told.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "tools/record/heap/heap_values.h"
#include "tools/record/heap/told.h"

/**
 * struct told_stack - a stack that the profile knows
 * @hh: makes it a member of the hash table, by @number.
 * @number: its number.
 * @lacks: what it lacks. Set by told_set_lacks().
 * @record: the stack in the profile.
 * @values: what the profile has been told, in all.
 */
struct told_stack {
	UT_hash_handle hh;
	uint32_t number;
	unsigned int lacks;
	const struct shstk_record *record;
	int64_t values[HEAP_VALUES];
};

struct told_stack *told_find(const struct told *told, uint32_t number)
{
	struct told_stack *found;

	HASH_FIND(hh, told->stacks, &number, sizeof(number), found);
	return found;
}

void told_set_lacks(struct told_stack *stack, unsigned int lacks)
{
	stack->lacks = lacks;
}

unsigned int told_lacks(const struct told_stack *stack)
{
	return stack->lacks;
}

int told_new(struct told *told, uint32_t number, struct shstk_profile *profile,
	     const struct shstk_sample *sample)
{
	struct told_stack *new = calloc(1, sizeof(*new));

	if (!new)
		return -ENOMEM;
	if (shstk_profile_enter(profile, sample, &new->record)) {
		free(new);
		return -ENOMEM;
	}
	new->number = number;
	memcpy(new->values, sample->values, sizeof(new->values));
	HASH_ADD(hh, told->stacks, number, sizeof(new->number), new);
	if (!new->hh.tbl) {
		free(new);
		return -ENOMEM;
	}
	return shstk_profile_count(profile, new->record, sample->time, sample->values);
}

/*
 * The sum of lifetimes changes a little with each look, because the rate of the clock is measured
 * anew each time. It only counts if something else has changed, too.
 */
static bool has_changed(const int64_t *before, const int64_t *now)
{
	for (int i = 0; i < HEAP_VALUES; i++)
		if (i != LIFETIME && before[i] != now[i])
			return true;
	return false;
}

int told_again(struct told_stack *stack, struct shstk_profile *profile, uint64_t time,
	       const int64_t *values)
{
	int64_t more[HEAP_VALUES];

	if (!has_changed(stack->values, values))
		return 0;
	for (int i = 0; i < HEAP_VALUES; i++)
		more[i] = values[i] - stack->values[i];
	memcpy(stack->values, values, sizeof(stack->values));
	return shstk_profile_count(profile, stack->record, time, more);
}

void told_forget(struct told *told)
{
	struct told_stack *stack, *next;

	HASH_ITER(hh, told->stacks, stack, next)
	{
		HASH_DEL(told->stacks, stack);
		free(stack);
	}
}
