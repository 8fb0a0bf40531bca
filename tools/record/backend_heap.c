// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * backend_heap.c - allocations, which the agent of tools/inject/heap/ counts.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tools/record/backend.h"
#include "tools/record/heap.h"
#include "tools/shstk.h"

static struct heap_opts heap_options(const struct record_opts *o)
{
	return (struct heap_opts){
		.sample = o->heap_sample,
		.with_mmap = o->heap_mmap,
		.per_thread = o->output.per_thread,
		.max_depth = o->depth,
		.snapshots = o->every > 0,
	};
}

static int begin_profile(struct recording *r)
{
	struct shstk_symbols_opts names = { .full_names = r->opts->output.full_names };
	struct heap_opts opts = heap_options(r->opts);
	int err = shstk_symbols_create(&names, &r->symbols);

	if (!err)
		err = shstk_profile_create(r->symbols, &r->profile);
	if (!err)
		err = heap_add_types(r->profile, &opts);
	return err;
}

static int begin(struct recording *r)
{
	struct heap_opts opts = heap_options(r->opts);
	struct heap_drain *drain = NULL;
	int err = begin_profile(r);

	if (!err)
		err = heap_drain_create(&opts, r->symbols, r->profile, &drain);
	r->state = drain;
	return err;
}

static void end(struct recording *r)
{
	heap_drain_destroy(r->state);
}

static const char *env(const struct recording *r)
{
	return heap_drain_env(r->state);
}

/* Counters wait; ended processes do not hold their memory for long. */
static int take(struct recording *r)
{
	return heap_drain_watch(r->state);
}

static int complete(struct recording *r)
{
	return heap_drain_part(r->state);
}

static int renew(struct recording *r)
{
	int err = begin_profile(r);

	return err ? err : heap_drain_renew(r->state, r->symbols, r->profile);
}

static int stop(struct recording *r, bool ended, const struct rusage *usage)
{
	(void)ended;
	(void)usage;
	return heap_drain_stop(r->state);
}

static void describe(const struct recording *r, char *buf, size_t size)
{
	char live[32], peak[32], processes[48];
	struct heap_counts c;

	heap_drain_count(r->state, &c);
	shstk_format_value(live, sizeof(live), c.live, "bytes");
	shstk_format_value(peak, sizeof(peak), c.peak, "bytes");
	plural(processes, sizeof(processes), c.processes, "process", "processes");
	snprintf(buf, size, "%s in use, %s %s, %s, %.1f s", live,
		 c.processes > 1 ? "largest peak of a process" : "peak", peak, processes,
		 (now_ns(CLOCK_MONOTONIC) - r->began) / 1e9);
}

static void report_gaps(struct recording *r, bool ended, const struct rusage *usage)
{
	struct heap_counts c;

	(void)ended;
	(void)usage;
	heap_drain_count(r->state, &c);
	if (!c.processes)
		complain("nothing recorded: %s did not load the agent", *r->opts->command);
	if (c.lost)
		complain("%llu allocations are missing: memory for recording ran out",
			 (unsigned long long)c.lost);
	if (c.foreign)
		complain("%u %s a malloc() of its own, whose allocations are not seen", c.foreign,
			 c.foreign == 1 ? "program has" : "programs have");
	if (c.allocator)
		complain(
			"%s%s has an allocator linked into it (%s), whose allocations are not seen",
			c.inside, c.more_inside ? ", and not it alone," : "", c.allocator);
}

static void report(struct recording *r, bool ended, const struct rusage *usage)
{
	char bytes[32], left[32], peak[32];
	struct heap_counts c;
	char *text;

	(void)usage;
	heap_drain_count(r->state, &c);
	shstk_format_value(bytes, sizeof(bytes), c.bytes, "bytes");
	shstk_format_value(left, sizeof(left), c.left_bytes, "bytes");
	shstk_format_value(peak, sizeof(peak), c.peak, "bytes");
	complain("%s%llu allocations of %s from %llu stacks in %u %s",
		 r->opts->heap_sample ? "about " : "", (unsigned long long)c.objects, bytes,
		 (unsigned long long)c.stacks, c.processes,
		 c.processes == 1 ? "process" : "processes");
	if (c.processes > 1)
		complain("largest peak of a process %s after %.2f s, in process %d", peak,
			 c.peak_time / 1e9, c.peak_pid);
	else
		complain("peak %s after %.2f s", peak, c.peak_time / 1e9);
	complain("%llu temporary, freed before the thread's next allocation (%.1f%%)",
		 (unsigned long long)c.temporary, c.objects ? 100.0 * c.temporary / c.objects : 0);
	complain("%s in %llu blocks %s", left, (unsigned long long)c.left,
		 ended ? "not freed at the end" : "in use");
	text = output_names(&r->opts->output);
	if (text && *text)
		complain("%s", text + 1);
	free(text);
}

const struct backend backend_heap = {
	.object = "libshstk-heap.so",
	.cumulative = true,
	.begin = begin,
	.end = end,
	.env = env,
	.take = take,
	.complete = complete,
	.renew = renew,
	.stop = stop,
	.describe = describe,
	.report_gaps = report_gaps,
	.report = report,
};
