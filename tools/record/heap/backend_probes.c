// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * backend_probes.c - the back end that records allocations of running processes, which BPF probes
 * report.
 */
#include <stdio.h>

#include "tools/convert/convert.h"
#include "tools/convert/mappings.h"
#include "tools/record/backend.h"
#include "tools/record/caution.h"
#include "tools/record/heap/allocations.h"
#include "tools/record/heap/probe_records.h"
#include "tools/shstk.h"

#define RING (64u << 20) /* stacks of half a second, if a program allocates all the time */

static void end(struct recording *r)
{
	probe_recording_destroy(r->state);
}

static int start(struct recording *r, struct target *target)
{
	const struct record_opts *o = r->opts;
	struct probe_recording_opts opts = {
		.heap = allocations_options(o),
		.pids = o->targets.pids,
		.nr_pids = o->targets.nr_pids,
		.ring_size = o->buffer ? (size_t)o->buffer * 1024 : RING,
	};
	struct probe_recording_counts more;
	struct heap_counts c;
	struct probe_recording *p;
	struct reason why;

	(void)target;
	if (probe_recording_create(&opts, r->symbols, &p, &why)) {
		complain("%s", why.text);
		return EXIT_OWN;
	}
	r->state = p;
	probe_recording_count(p, &c, &more);
	if (!o->quiet)
		complain(
			"allocations from now on, by probes at %u functions; for %g s, or until Ctrl-C",
			more.functions, o->duration);
	return 0;
}

static bool all_gone(const struct recording *r)
{
	return !probe_recording_alive(r->state);
}

static int take(struct recording *r)
{
	return probe_recording_take(r->state);
}

static void watch(struct recording *r)
{
	probe_recording_watch(r->state);
}

static int follow(struct recording *r)
{
	return output_follows(&r->opts->output) ? probe_recording_follow(r->state, r->profile) : 0;
}

static int complete(struct recording *r)
{
	return probe_recording_report(r->state, r->profile);
}

static int renew(struct recording *r)
{
	int err = allocations_begin(r);

	if (!err)
		probe_recording_renew(r->state, r->symbols);
	return err;
}

static int stop(struct recording *r, bool ended, const struct rusage *usage)
{
	int err = probe_recording_stop(r->state);

	(void)ended;
	(void)usage;
	return err ? err : probe_recording_report(r->state, r->profile);
}

static uint64_t shared(const struct recording *r)
{
	return probe_recording_shared(r->state);
}

static void count(const struct recording *r, struct sample_counts *ret)
{
	struct heap_counts c;

	probe_recording_count(r->state, &c, NULL);
	*ret = (struct sample_counts){ .samples = c.objects, .lost = c.lost };
}

static void describe(const struct recording *r, char *buf, size_t size)
{
	struct heap_counts c;

	probe_recording_count(r->state, &c, NULL);
	allocations_describe(r, &c, buf, size);
}

static void report_gaps(struct recording *r, bool ended, const struct rusage *usage)
{
	struct probe_recording_counts more;
	struct heap_counts c;

	(void)ended;
	(void)usage;
	probe_recording_count(r->state, &c, &more);
	if (c.lost)
		caution(r,
			"%llu allocations are missing: the ring was full (see --heap-sample and --buffer)",
			(unsigned long long)c.lost);
	if (more.unseen)
		caution(r, "%llu allocations are missing: their return was not seen",
			(unsigned long long)more.unseen);
	if (more.deep)
		caution(r,
			"%llu stacks are deeper than there is room for (see --depth), and lack the outer end: shown as [truncated]",
			(unsigned long long)more.deep);
	if (more.folded)
		remark(r, "%llu stacks " CONVERT_FOLDED, (unsigned long long)more.folded);
	if (more.too_short)
		remark(r,
		       "%llu stacks continue beyond the %u bytes that were copied in the end: shown as [truncated]",
		       (unsigned long long)more.too_short, more.copy);
	if (more.elsewhere)
		remark(r, "%llu stacks " UNWOUND_ELSEWHERE, (unsigned long long)more.elsewhere);
	if (more.cut)
		remark(r,
		       "%llu stacks end at code without unwind information: shown as [truncated]",
		       (unsigned long long)more.cut);
	allocations_report_functions(r, &c);
	if (!c.objects)
		complain("no allocations: nothing was allocated meanwhile");
}

static void report(struct recording *r, bool ended, const struct rusage *usage)
{
	struct heap_counts c;

	(void)ended;
	(void)usage;
	probe_recording_count(r->state, &c, NULL);
	allocations_report(r, &c, false);
}

const struct backend backend_probes = {
	.cumulative = true,
	.begin = allocations_begin,
	.end = end,
	.start = start,
	.all_gone = all_gone,
	.take = take,
	.watch = watch,
	.follow = follow,
	.complete = complete,
	.renew = renew,
	.stop = stop,
	.shared = shared,
	.count = count,
	.describe = describe,
	.report_gaps = report_gaps,
	.report = report,
};
