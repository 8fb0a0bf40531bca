// SPDX-License-Identifier: GPL-2.0-or-later
/* callchain_beside.c - the callchain that a walker wrote beside a sample. See callchain_beside.h. */
#include <linux/perf_event.h>
#include <string.h>

#include "bpf/language.h"
#include "tools/record/perf/callchain_beside.h"

bool callchain_beside_take(struct callchain_beside *b, int tid, const void *record, size_t size)
{
	const struct walk_chain *c = record;

	if (size < sizeof(*c) || c->end != LANGUAGE_CALLCHAIN)
		return false;
	b->tid = 0;
	if (c->nr < 2 || c->nr > WALK_ENTRIES || c->nr > (size - sizeof(*c)) / sizeof(*b->chain))
		return true;
	b->tid = tid;
	b->nr = c->nr;
	memcpy(b->chain + CALLCHAIN_BESIDE_MAX - b->nr, c + 1, b->nr * sizeof(*b->chain));
	return true;
}

/* Cuts the callchain as the kernel does, for which the entries of both parts count. */
static void cut(struct perf_sample *sample)
{
	const struct callchain user = perf_sample_user(sample);

	if (user.nr > user.max)
		sample->nr -= user.nr - user.max;
}

void callchain_beside_add(struct callchain_beside *b, struct perf_sample *sample)
{
	const size_t room = CALLCHAIN_BESIDE_MAX - b->nr;
	const uint64_t *pc = &b->chain[room + 1];

	if (!b->tid || b->tid != sample->tid || sample->walked)
		return;
	b->tid = 0;
	/* What belongs to a sample that was lost is not this one's. */
	if (!sample->abi || sample->regs.pc != *pc || sample->nr > room ||
	    perf_sample_user(sample).nr)
		return;
	if (sample->nr)
		memcpy(b->chain + room - sample->nr, sample->chain, sample->nr * sizeof(*b->chain));
	sample->chain = b->chain + room - sample->nr;
	sample->nr += b->nr;
	cut(sample);
}
