// SPDX-License-Identifier: LGPL-2.1-or-later
/* moments.c - keeps the times of samples, as moments.h describes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"

#define FIRST 1024 /* moments that there is room for at first */
#define FIRST_SLOT 1000000 /* ns of the first slots */

static int by_time_and_record(const void *a, const void *b)
{
	const struct shstk_moment *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->record->number < y->record->number ? -1 : x->record->number > y->record->number;
}

/* Merges equal moments within each slot of @slot ns. */
static void merge(struct shstk_moments *moments, uint64_t slot)
{
	const size_t nr_types = (moments->size - sizeof(struct shstk_moment)) / sizeof(int64_t);
	size_t kept = 0;

	moments->slot = slot;
	for (size_t i = 0; i < moments->nr; i++)
		shstk_moments_at(moments, i)->time -= shstk_moments_at(moments, i)->time % slot;
	qsort(moments->v, moments->nr, moments->size, by_time_and_record);
	for (size_t i = 0; i < moments->nr; i++) {
		struct shstk_moment *last = kept ? shstk_moments_at(moments, kept - 1) : NULL;
		const struct shstk_moment *from = shstk_moments_at(moments, i);

		if (!last || by_time_and_record(last, from)) {
			memmove(shstk_moments_at(moments, kept++), from, moments->size);
			continue;
		}
		for (size_t t = 0; t < nr_types; t++)
			last->values[t] = shstk_add(last->values[t], from->values[t]);
	}
	moments->nr = kept;
}

/* Returns whether there are so many different records that no slot is long enough. */
static bool many_records(const struct shstk_moments *moments)
{
	size_t last = 0;

	for (size_t i = 0; i < moments->nr; i++)
		if (shstk_moments_at(moments, i)->record->number > last)
			last = shstk_moments_at(moments, i)->record->number;
	return last >= moments->most / 2;
}

/*
 * Merges moments until at most half of the limit are left, so that this is seldom needed. The loop
 * ends, because one slot for all has few enough moments.
 */
static void thin_out(struct shstk_moments *moments)
{
	uint64_t slot = moments->slot ? 2 * moments->slot : FIRST_SLOT;

	if (many_records(moments)) {
		/* The profile itself takes more memory for its records than these moments do. */
		moments->most *= 2;
		return;
	}
	for (; moments->nr > moments->most / 2 && slot; slot *= 2)
		merge(moments, slot);
}

static int make_room(struct shstk_moments *moments)
{
	size_t max = moments->max ? 2 * moments->max : FIRST;
	uint8_t *more;

	if (moments->nr >= moments->most)
		thin_out(moments);
	if (moments->nr < moments->max)
		return 0;
	more = reallocarray(moments->v, max, moments->size);
	if (!more)
		return -ENOMEM;
	moments->v = more;
	moments->max = max;
	return 0;
}

int shstk_moments_add(struct shstk_moments *moments, uint64_t time,
		      const struct shstk_record *record, const int64_t *values,
		      unsigned int nr_types)
{
	struct shstk_moment *new;

	moments->size = sizeof(*new) + nr_types * sizeof(*values);
	if (make_room(moments))
		return -ENOMEM;
	new = shstk_moments_at(moments, moments->nr++);
	new->time = moments->slot ? time - time % moments->slot : time;
	new->record = record;
	memcpy(new->values, values, nr_types * sizeof(*values));
	return 0;
}

bool shstk_moments_fall(const struct shstk_moments *moments, unsigned int type)
{
	for (size_t i = 0; i < moments->nr; i++)
		if (shstk_moments_at(moments, i)->values[type] < 0)
			return true;
	return false;
}

void shstk_moments_reset(struct shstk_moments *moments)
{
	moments->nr = 0;
	moments->slot = 0;
}

void shstk_moments_deinit(struct shstk_moments *moments)
{
	free(moments->v);
	moments->v = NULL;
}
