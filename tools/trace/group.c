// SPDX-License-Identifier: GPL-2.0-or-later
/* group.c - group threads with equal stacks. See group.h. */
#include <stdlib.h>
#include <string.h>

#include "tools/trace/group.h"
#include "tools/trace/mutex.h"

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_stacks(const struct trace_stack *a, const struct trace_stack *b)
{
	int diff = compare_numbers(a->nr, b->nr);

	if (!diff)
		diff = compare_numbers(a->info.end, b->info.end);
	if (!diff)
		diff = compare_numbers(a->nr_folds, b->nr_folds);
	if (!diff)
		diff = memcmp(a->pcs, b->pcs, a->nr * sizeof(*a->pcs));
	if (!diff)
		diff = memcmp(a->marks, b->marks, a->nr);
	for (unsigned int i = 0; i < a->nr_folds && !diff; i++) {
		const struct trace_fold *x = &a->folds[i], *y = &b->folds[i];

		diff = compare_numbers(x->at, y->at);
		if (!diff)
			diff = compare_numbers(x->period, y->period);
		if (!diff)
			diff = compare_numbers(x->times, y->times);
	}
	return diff;
}

static bool has_frames(const struct trace_thread *t)
{
	return t->sampled && trace_shown(t)->taken && trace_shown(t)->nr > 0;
}

/*
 * Compares two threads. Returns 0 if they are shown as one. A thread without a stack equals no
 * other.
 */
static int compare(const struct trace_thread *a, const struct trace_thread *b)
{
	const struct trace_stack *x = trace_shown(a), *y = trace_shown(b);
	int diff = compare_numbers(has_frames(a), has_frames(b));

	if (!diff && !has_frames(a))
		diff = compare_numbers(a->index, b->index);
	if (!diff)
		diff = strcmp(a->note ? a->note : "", b->note ? b->note : "");
	if (!diff)
		diff = compare_numbers(x == &a->hardware, y == &b->hardware);
	if (!diff)
		diff = compare_numbers(a->in_handler, b->in_handler);
	if (!diff)
		diff = compare_numbers(x->too_deep, y->too_deep);
	if (!diff)
		diff = mutex_compare(a->waiter, b->waiter);
	return diff || !has_frames(a) ? diff : compare_stacks(x, y);
}

static int by_group(const void *a, const void *b)
{
	const struct trace_thread *x = *(struct trace_thread *const *)a;
	const struct trace_thread *y = *(struct trace_thread *const *)b;
	int diff = compare(x, y);

	return diff ? diff : compare_numbers(x->index, y->index);
}

static int by_first(const void *a, const void *b)
{
	const struct trace_group *x = a, *y = b;

	return compare_numbers(x->threads[0]->index, y->threads[0]->index);
}

size_t group_threads(const struct trace_opts *o, struct trace_thread **list, size_t nr,
		     struct trace_group *ret)
{
	bool each = o->each_thread || o->compare || o->json;
	size_t n = 0;

	for (size_t i = 0; i < nr; i++)
		list[i]->index = i;
	if (!each)
		qsort(list, nr, sizeof(*list), by_group);
	for (size_t i = 0; i < nr; i++) {
		if (i && !each && !compare(list[i - 1], list[i]))
			ret[n - 1].nr++;
		else
			ret[n++] = (struct trace_group){ list + i, 1 };
	}
	qsort(ret, n, sizeof(*ret), by_first);
	return n;
}
