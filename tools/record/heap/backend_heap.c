// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * backend_heap.c - the back end whose allocations are counted by the heap agent
 * (tools/inject/heap/) inside the recorded processes.
 */
#include <stdio.h>

#include "tools/convert/convert.h"
#include "tools/record/backend.h"
#include "tools/record/caution.h"
#include "tools/record/heap/allocations.h"
#include "tools/record/heap/heap.h"
#include "tools/shstk.h"

#define MIN_MAPPED (256u << 10)

static int begin(struct recording *r)
{
	struct heap_opts opts = allocations_options(r->opts);
	struct heap_recording *heap = NULL;
	int err = allocations_begin(r);

	if (!err)
		err = heap_recording_create(&opts, r->symbols, r->profile, &heap);
	r->state = heap;
	return err;
}

static void end(struct recording *r)
{
	heap_recording_destroy(r->state);
}

static const char *env(const struct recording *r)
{
	return heap_recording_env(r->state);
}

/*
 * Reads processes that have ended, so that their memory is not held for long. The counters of
 * others can wait.
 */
static int take(struct recording *r)
{
	return heap_recording_watch(r->state);
}

static int follow(struct recording *r)
{
	return heap_recording_follow(r->state);
}

static int complete(struct recording *r)
{
	return heap_recording_part(r->state);
}

static int renew(struct recording *r)
{
	int err = allocations_begin(r);

	return err ? err : heap_recording_renew(r->state, r->symbols, r->profile);
}

static int stop(struct recording *r, bool ended, const struct rusage *usage)
{
	(void)ended;
	(void)usage;
	return heap_recording_stop(r->state);
}

static uint64_t shared(const struct recording *r)
{
	return heap_recording_shared(r->state);
}

static void count(const struct recording *r, struct sample_counts *ret)
{
	struct heap_counts c;

	heap_recording_count(r->state, &c);
	*ret = (struct sample_counts){ .samples = c.objects, .lost = c.lost };
}

static void describe(const struct recording *r, char *buf, size_t size)
{
	struct heap_counts c;

	heap_recording_count(r->state, &c);
	allocations_describe(r, &c, buf, size);
}

/*
 * Reports memory that was taken past malloc(). The stack or buffer that many programs map is not
 * worth a line.
 */
static void report_mapped(struct recording *r, const struct heap_counts *c)
{
	char bytes[32];

	if (r->opts->heap_mmap || c->mapped < MIN_MAPPED || c->mapped < c->peak / 20)
		return;
	shstk_format_value(bytes, sizeof(bytes), c->mapped, "bytes");
	caution(r,
		"%s at a time were allocated by mmap() in %s (process %d), which these sums do not include: see --heap-mmap",
		bytes, c->mapped_by, c->mapped_pid);
}

/* Reports stacks that are not shown whole. */
static void report_lacks(struct recording *r, const struct heap_lacks *n)
{
	if (n->deep)
		caution(r,
			"%llu of %llu stacks are deeper than there is room for (see --depth), and lack the outer end: shown as [truncated]",
			(unsigned long long)n->deep, (unsigned long long)n->stacks);
	if (n->cut)
		remark(r, "%llu of %llu stacks are cut at the outer end: shown as [truncated]",
		       (unsigned long long)n->cut, (unsigned long long)n->stacks);
	if (n->folded)
		remark(r, "%llu of %llu stacks " CONVERT_FOLDED, (unsigned long long)n->folded,
		       (unsigned long long)n->stacks);
}

/* Reports programs whose objects of Python are not in the sums. */
static void report_objects(struct recording *r, const struct heap_counts *c)
{
	if (c->objects_unseen && r->opts->heap_python)
		caution(r,
			"Python in %u %s has replaced what records its objects (PYTHONMALLOC, -X dev): those of up to 512 bytes are not in these sums",
			c->objects_unseen, c->objects_unseen == 1 ? "process" : "processes");
	else if (c->objects_unseen)
		remark(r,
		       "Python's objects of up to 512 bytes are not in these sums (%u %s): see --heap-python",
		       c->objects_unseen, c->objects_unseen == 1 ? "process" : "processes");
}

static void report_gaps(struct recording *r, bool ended, const struct rusage *usage)
{
	struct heap_counts c;

	(void)ended;
	(void)usage;
	heap_recording_count(r->state, &c);
	if (!c.processes)
		complain("nothing recorded: %s did not load the agent", *r->opts->command);
	if (c.lost)
		caution(r, "%llu allocations are missing: memory for recording ran out",
			(unsigned long long)c.lost);
	report_lacks(r, &c.lacks);
	if (c.foreign)
		caution(r, "%u %s a malloc() of its own, whose allocations are not seen", c.foreign,
			c.foreign == 1 ? "program has" : "programs have");
	if (c.deepbind)
		caution(r,
			"%u %s libraries with RTLD_DEEPBIND in a way that could not be followed: what these allocate is not seen, and what they free looks as if it never was (--heap -p sees both)",
			c.deepbind, c.deepbind == 1 ? "program loaded" : "programs loaded");
	report_mapped(r, &c);
	report_objects(r, &c);
	allocations_report_functions(r, &c);
	if (c.allocator)
		caution(r,
			"%s%s has an allocator linked into it (%s), whose allocations are not seen",
			c.inside, c.more_inside ? ", and not it alone," : "", c.allocator);
}

static void report(struct recording *r, bool ended, const struct rusage *usage)
{
	struct heap_counts c;

	(void)usage;
	heap_recording_count(r->state, &c);
	allocations_report(r, &c, ended);
}

const struct backend backend_heap = {
	.object = "libshstk-heap.so",
	.cumulative = true,
	.begin = begin,
	.end = end,
	.env = env,
	.take = take,
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
