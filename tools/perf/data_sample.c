// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * data_sample.c - takes the fields of samples in a perf.data file. See data_private.h.
 */
#include "tools/perf/data_private.h"
#include "tools/perf/regs.h"

/* From include/uapi/linux/perf_event.h, newer than Debian 12. */
#define FORMAT_LOST_ (1u << 4)
#define BRANCH_HW_INDEX_ (1u << 17)
#define BRANCH_COUNTERS_ (1u << 19)

static void take_regs(const struct perfdata *pd, uint64_t mask, struct body *b,
		      struct perf_sample *s)
{
	s->abi = take64(b);
	s->regs.size = sizeof(s->regs);
	if (!s->abi)
		return;
	for (unsigned int i = 0; i < PERF_MAX_REGS; i++)
		if (mask & 1ull << i)
			perf_regs_set(pd->arch, i, take64(b), &s->regs);
}

#define DEFAULT_CHAIN 127 /* entries of a callchain: the default of kernel.perf_event_max_stack */

/*
 * Returns the most entries that the callchain may have, if the file does not say. As a rule that is
 * the default. Where a callchain has more entries, the limit was larger, is not known, and was not
 * reached.
 */
static size_t most_entries(const struct perf_sample *s)
{
	size_t entries = 0;

	for (uint64_t i = 0; i < s->nr; i++)
		entries += s->chain[i] < PERF_CONTEXT_MAX;
	return entries > DEFAULT_CHAIN ? entries + 1 : DEFAULT_CHAIN;
}

static void take_chain(struct body *b, struct perf_sample *s)
{
	uint64_t nr = take64(b);

	s->chain = (const void *)take(b, nr > 65536 ? UINT64_MAX : 8 * nr);
	s->nr = s->chain ? nr : 0;
	if (!s->max_chain)
		s->max_chain = most_entries(s);
}

static void skip_read(struct body *b, uint64_t format)
{
	unsigned int each = 1 + !!(format & PERF_FORMAT_ID) + !!(format & FORMAT_LOST_);
	uint64_t nr = 1;

	if (format & PERF_FORMAT_GROUP)
		nr = take64(b);
	take(b, 8 * (!!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
		     !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING)));
	take(b, nr > 65536 ? UINT64_MAX : nr * each * 8);
}

static void skip_branches(struct body *b, uint64_t type)
{
	uint64_t nr = take64(b);

	if (type & BRANCH_HW_INDEX_)
		take64(b);
	take(b, nr > 65536 ? UINT64_MAX : nr * 24);
	if (type & BRANCH_COUNTERS_)
		take(b, nr * 8);
}

bool perfdata_take_sample(const struct perfdata *pd, const struct perfdata_event *e, struct body *b,
			  struct perf_sample *s)
{
	uint64_t type = e->sample_type, n;

	s->period = e->freq || !e->period ? 1 : e->period;
	s->max_chain = e->max_chain;
	if (type & PERF_SAMPLE_IDENTIFIER)
		take64(b);
	if (type & PERF_SAMPLE_IP)
		take64(b);
	if (type & PERF_SAMPLE_TID) {
		s->pid = take32(b);
		s->tid = take32(b);
	}
	if (type & PERF_SAMPLE_TIME)
		s->time = take64(b);
	if (type & PERF_SAMPLE_ADDR)
		take64(b);
	if (type & PERF_SAMPLE_ID)
		take64(b);
	if (type & PERF_SAMPLE_STREAM_ID)
		take64(b);
	if (type & PERF_SAMPLE_CPU) {
		s->cpu = take32(b) + 1;
		take32(b);
	}
	if (type & PERF_SAMPLE_PERIOD)
		s->period = take64(b);
	if (type & PERF_SAMPLE_READ)
		skip_read(b, e->read_format);
	if (type & PERF_SAMPLE_CALLCHAIN)
		take_chain(b, s);
	if (type & PERF_SAMPLE_RAW)
		take(b, take32(b));
	if (type & PERF_SAMPLE_BRANCH_STACK)
		skip_branches(b, e->branch_type);
	if (type & PERF_SAMPLE_REGS_USER)
		take_regs(pd, e->regs, b, s);
	if (type & PERF_SAMPLE_STACK_USER) {
		n = take64(b);
		if (n) {
			uint64_t used;

			s->stack = take(b, n);
			used = take64(b);
			s->stack_ends = used < n;
			s->stack_size = s->stack_ends ? used : n;
		}
	}
	if (b->bad)
		s->stack_size = 0;
	return !b->bad;
}

const struct perfdata_event *perfdata_sample_event(const struct perfdata *pd, struct body b)
{
	uint64_t type = pd->events[0].sample_type;

	if (pd->nr_events == 1)
		return &pd->events[0];
	if (type & PERF_SAMPLE_IDENTIFIER)
		return perfdata_event_of(pd, take64(&b));
	if (!(type & PERF_SAMPLE_ID))
		return &pd->events[0];
	take(&b, 8 * (!!(type & PERF_SAMPLE_IP) + !!(type & PERF_SAMPLE_TID) +
		      !!(type & PERF_SAMPLE_TIME) + !!(type & PERF_SAMPLE_ADDR)));
	return perfdata_event_of(pd, take64(&b));
}
