// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fold.c - shorten the stacks of deep recursions. See fold.h.
 *
 * Of a stack that is still too long, the innermost half and the outermost half of the allowed
 * entries are kept.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/repeats.h"
#include "tools/trace/fold.h"

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
		struct repeats run = { .period = 1, .times = 1 };

		if (repeats_find(s->pcs + at, s->nr - at, &run))
			err = add(s, &(struct trace_fold){ (int)to, run.period, run.times });
		move(s, to, at, run.period);
		to += run.period;
		at += run.period * run.times;
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
