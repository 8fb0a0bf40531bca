// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fold.c - shorten the stacks of deep recursions. See fold.h.
 *
 * Entries are equal if their addresses are: a simple recursion makes the same calls each time. A
 * recursion that makes varying calls, such as a walk of a tree, is not found to repeat. Of a stack
 * that is still too long, the innermost half and the outermost half of the allowed entries are
 * kept.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/trace/fold.h"

#define PERIOD_MAX 16 /* longest group of entries that is looked for */
#define RUN_MIN 64 /* shortest run, in entries, that is worth a line */
#define TIMES_MIN 4

/* Returns how often the @period entries at @at follow each other. */
static size_t times_at(const struct trace_stack *s, size_t at, size_t period)
{
	size_t n = at + period;

	while (n < (size_t)s->nr && s->pcs[n] == s->pcs[n - period])
		n++;
	return (n - at) / period;
}

/* Finds the run with the shortest period at @at. Returns false if there is none. */
static bool find_run(const struct trace_stack *s, size_t at, struct trace_fold *ret)
{
	for (unsigned int period = 1; period <= PERIOD_MAX; period++) {
		size_t times = times_at(s, at, period);

		if (times < TIMES_MIN || times * period < RUN_MIN)
			continue;
		ret->period = period;
		ret->times = times;
		return true;
	}
	return false;
}

static int add(struct trace_stack *s, const struct trace_fold *fold)
{
	struct trace_fold *more = reallocarray(s->folds, s->nr_folds + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	s->folds = more;
	s->folds[s->nr_folds++] = *fold;
	return 0;
}

static void move(struct trace_stack *s, size_t to, size_t from, size_t n)
{
	memmove(s->pcs + to, s->pcs + from, n * sizeof(*s->pcs));
	memmove(s->marks + to, s->marks + from, n);
}

/* Keeps the @max / 2 innermost entries and as many of the outermost as make @max in all. */
static int keep_ends(struct trace_stack *s, unsigned int max)
{
	size_t inner = max / 2, outer = max - inner, left_out = s->nr - max;
	const struct trace_fold fold = { .at = (int)inner, .times = left_out };
	unsigned int n = 0;

	for (unsigned int i = 0; i < s->nr_folds; i++) {
		struct trace_fold f = s->folds[i];

		if (f.at + f.period > inner && (size_t)f.at < inner + left_out)
			continue;
		if ((size_t)f.at >= inner)
			f.at -= (int)left_out;
		s->folds[n++] = f;
	}
	s->nr_folds = n;
	move(s, inner, s->nr - outer, outer);
	s->nr = (int)max;
	return add(s, &fold);
}

int fold_stack(struct trace_stack *s, unsigned int max)
{
	size_t to = 0;
	int err = 0;

	for (size_t at = 0; at < (size_t)s->nr && !err;) {
		struct trace_fold run = { .at = (int)to };
		size_t n = 1;

		if (find_run(s, at, &run)) {
			err = add(s, &run);
			n = run.period;
		}
		move(s, to, at, n);
		to += n;
		at += n * (run.times ? run.times : 1);
	}
	s->nr = (int)to;
	return err || to <= max ? err : keep_ends(s, max);
}

const struct trace_fold *fold_at(const struct trace_stack *s, int at)
{
	for (unsigned int i = 0; i < s->nr_folds; i++)
		if (s->folds[i].at == at)
			return &s->folds[i];
	return NULL;
}
