/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vary.h - has threads that are shorter than a period sampled as often as their time demands.
 *
 * An event that threads inherit begins a whole period in each of them: a thread that is shorter has no
 * sample, and one that is a little longer is always sampled at the same moment. So, once many threads
 * end after few samples, threads that begin get periods that vary. They are spread evenly from a 32nd of
 * the period to the whole one, and a sample stands for as much time as makes all moments of a thread's
 * life count the same.
 *
 * A period that is set for an event is that of all threads that inherit it later, but it also begins the
 * event's own period anew. So the event that is set is that of a process that does nothing: it started
 * the command (target.h).
 */
#ifndef TOOLS_RECORD_PERF_VARY_H
#define TOOLS_RECORD_PERF_VARY_H

#include <stdint.h>

/**
 * struct vary - periods that vary
 * @least: the smallest period, in ns.
 * @whole: the period of threads that began before, in ns: the largest that others get.
 * @step: how many periods were set.
 */
struct vary {
	uint64_t least;
	uint64_t whole;
	uint32_t step;
};

/* Begins with the period @whole in ns, which no thread has yet but that of before. */
void vary_init(struct vary *v, uint64_t whole);

/* Returns the next period in ns, for the threads that begin until the one after it. */
uint64_t vary_next(struct vary *v);

/*
 * Returns the ns for which a sample stands that came after @counted ns of its event, whose period is
 * @period.
 */
uint64_t vary_weight(const struct vary *v, uint64_t period, uint64_t counted);

#endif
