// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * adapt.c - see adapt.h. Each change has three functions: is it due, how are the rings to be opened
 * then, and what else is different once they are.
 */
#include <errno.h>
#include <stdlib.h>

#include "tools/record/perf/private.h"
#include "tools/shstk.h"

/* ---- rings for rings ---- */

/*
 * Opens other events for all that is recorded. Both record for a moment, so that nothing that
 * happens to processes is missed; it does no harm twice. Returns whether that was granted.
 */
static bool open_rings(struct perf_drain *d, const struct perf_opts *wanted,
		       struct perf_rings **ret)
{
	struct perf_opts opts = *wanted;
	pid_t *list = NULL;
	struct reason why;
	int err = 0;

	/* As many stacks as before. */
	if (opts.may_shrink)
		opts.ring_size = perf_ring_size(opts.ring_size,
						opts.ring_size / PERF_FIRST_COPY * opts.copy);
	if (opts.nr_pids)
		err = scope_targets_now(&d->convert->all, &opts, &list);
	if (!err)
		err = perf_rings_open(&opts, ret, &why);
	free(list);
	return !err;
}

/* The old ones are read to their end. */
static int replace_rings(struct perf_drain *d, const struct perf_opts *opts,
			 struct perf_rings *rings)
{
	uint64_t stopped;
	int ret;

	perf_rings_stop(d->rings);
	stopped = now_ns(CLOCK_MONOTONIC);
	/* If it does not walk there, stacks are copied. */
	if (d->walker)
		perf_rings_walk(rings, d->walker);
	sums_take_over(&d->sums, d->rings, rings);
	ret = perf_rings_read(d->rings, true, perf_drain_record, d);
	sums_close(&d->sums, d->rings);
	perf_rings_close(d->rings);
	d->rings = rings;
	d->opts = *opts;
	d->since = stopped;
	return ret;
}

/* ---- CHANGE_PERIOD ---- */

#define WINDOW 50000000 /* ns over which samples are counted */

/* What is too frequent is sampled by the next of these: primes, which no loop is in step with. */
static const uint64_t coarser[] = { 11, 101, 1009, 10007, 100003, 1000003 };

/* Is it due? Looks once in a window. */
static bool too_many(struct perf_drain *d, struct perf_opts *opts)
{
	struct adapt *a = &d->adapt;
	uint64_t now = now_ns(CLOCK_MONOTONIC), passed = now - a->came_since;
	uint64_t second;

	if (passed < WINDOW)
		return false;
	second = a->came * 1000000000 / passed;
	a->came = 0;
	a->came_since = now;
	if (second <= PERF_AFFORDED)
		return false;
	for (size_t i = 0; i < sizeof(coarser) / sizeof(*coarser); i++) {
		opts->count = coarser[i];
		if (second * d->opts.count / opts->count < PERF_AFFORDED / 4)
			break;
	}
	return opts->count > d->opts.count;
}

/* ---- CHANGE_COPIES ---- */

/* A process had no shadow stack for so many ns of its samples, or all such processes for so much
 * CPU time: a loader on a slow machine takes some ms to switch it on. */
#define BARE_OF_ONE 50000000
#define BARE_OF_ALL 200000000

static bool has_bare(struct perf_drain *d, struct perf_opts *opts)
{
	const size_t second = d->opts.off ? SIZE_MAX : d->opts.freq * PERF_FIRST_COPY;
	const struct convert_learnt *l = &d->convert->learnt;

	if (d->convert->stacks.source != STACK_SHADOW ||
	    (l->bare_longest < BARE_OF_ONE && l->bare < BARE_OF_ALL))
		return false;
	if (opts->may_shrink)
		opts->ring_size = perf_ring_size(opts->ring_size, second);
	opts->copy = PERF_FIRST_COPY;
	return true;
}

/* From now on stacks are looked at that have copies of another size. */
static void begin_sizes(struct perf_drain *d)
{
	d->convert->learnt.copies = d->convert->learnt.too_short = 0;
}

static void begin_copies(struct perf_drain *d)
{
	d->convert->stacks.source = d->chains ? STACK_SHADOW_OR_COPIES : STACK_COPIES;
	begin_sizes(d);
}

/* ---- CHANGE_SCOPE ---- */

#define UNSEEN 16 /* short threads with none or few samples that matter, if there are */
#define UNSEEN_PART 8 /* not so many times as many samples */

/*
 * Do many threads end sooner than a period? Events of processes begin anew in each thread, and go
 * from one to the other with a switch between them: the time of all of these is lost then. By
 * events of the CPUs others' samples are passed over.
 */
static bool too_short_lived(struct perf_drain *d, struct perf_opts *opts)
{
	const struct convert_learnt *l = &d->convert->learnt;

	if (d->scope.kind != SCOPE_GIVEN || d->scope.threads || !opts->main || opts->count ||
	    l->short_lived < UNSEEN || l->short_lived <= d->convert->counts.samples / UNSEEN_PART)
		return false;
	opts->nr_pids = 0;
	return true;
}

static void widen(struct perf_drain *d)
{
	scope_widen(&d->scope, &d->convert->all);
}

/* ---- CHANGE_MOMENTS ---- */

/*
 * It is not done before there is a program of Go: loading takes time, and so does each sample of
 * others.
 */
static bool has_go(struct perf_drain *d, struct perf_opts *opts)
{
	if (!d->convert->learnt.go || d->moments || !stacks_are_copied(&d->convert->stacks))
		return false;
	d->moments = gomoments_create(opts->freq);
	if (d->moments)
		opts->program = gomoments_program(d->moments);
	else
		d->adapt.refused |= 1u << CHANGE_MOMENTS;
	return d->moments;
}

/* ---- CHANGE_SIZE ---- */

/* The copy of a stack grows to the next of these when it is too small for some. */
static const unsigned int sizes[] = { PERF_FIRST_COPY, 32768, 65528 };

/* More than one stack of 200 is larger than what is copied. */
static bool too_small(struct perf_drain *d, struct perf_opts *opts)
{
	const struct convert_learnt *l = &d->convert->learnt;

	if (!stacks_are_copied(&d->convert->stacks) || l->too_short < 4 ||
	    l->too_short <= l->copies / 200)
		return false;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		if (sizes[i] <= d->opts.copy)
			continue;
		opts->copy = sizes[i];
		return true;
	}
	return false;
}

/* ---- all changes ---- */

/**
 * struct transition - a change
 * @due: is it due? Says how rings are to be opened then.
 * @made: what else is different then; or NULL.
 */
static const struct transition {
	bool (*due)(struct perf_drain *d, struct perf_opts *opts);
	void (*made)(struct perf_drain *d);
} transitions[CHANGES] = {
	[CHANGE_PERIOD] = { too_many, NULL },	     [CHANGE_COPIES] = { has_bare, begin_copies },
	[CHANGE_SCOPE] = { too_short_lived, widen }, [CHANGE_MOMENTS] = { has_go, NULL },
	[CHANGE_SIZE] = { too_small, begin_sizes },
};

static int make_change(struct perf_drain *d, enum change change)
{
	const struct transition *t = &transitions[change];
	struct perf_opts opts = d->opts;
	struct perf_rings *rings;
	int ret;

	if (d->adapt.refused & 1u << change || !t->due(d, &opts))
		return 0;
	if (!open_rings(d, &opts, &rings)) {
		d->adapt.refused |= 1u << change;
		return 0;
	}
	ret = replace_rings(d, &opts, rings);
	if (t->made)
		t->made(d);
	return ret;
}

int adapt(struct perf_drain *d)
{
	int ret = 0;

	for (int change = 0; change < CHANGES && !ret; change++)
		ret = make_change(d, change);
	return ret;
}
