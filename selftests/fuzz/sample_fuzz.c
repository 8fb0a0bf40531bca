// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sample_fuzz.c - records of perf events, as rings hand them out: what is taken from a record lies
 * inside it.
 *
 * The first byte of an input says how the record is to be read, the rest is its body.
 */
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/perf/records.h"
#include "tools/perf/sample.h"

static volatile uint64_t sink;

static void look(const struct perf_record *r, const struct perf_sample *s, bool copy)
{
	const uint8_t *end = (const uint8_t *)r->body + r->size;

	if (s->abi > PERF_SAMPLE_REGS_ABI_64 || (!copy && (s->abi || s->stack_size)))
		abort();
	if (s->nr > r->size / 8 || (const uint8_t *)(s->chain + s->nr) > end)
		abort();
	if (s->stack_size && (s->stack < (const uint8_t *)r->body || s->stack > end ||
			      s->stack_size > (size_t)(end - s->stack)))
		abort();
	if (s->abi && s->regs.size != sizeof(s->regs))
		abort();
	for (uint64_t i = 0; i < s->nr; i++)
		sink ^= s->chain[i];
	for (size_t i = 0; i < s->stack_size; i++)
		sink ^= s->stack[i];
}

/* Checks that a text lies in the record, and ends there. */
static void look_at_text(const struct perf_record *r, const char *text)
{
	const char *end = (const char *)r->body + r->size;

	if (text < (const char *)r->body || text >= end || !memchr(text, '\0', end - text))
		abort();
}

static void look_at_others(const struct perf_record *r)
{
	struct perf_map map;
	struct perf_comm comm;
	struct perf_fork fork;

	if (perf_record_map(r, &map)) {
		look_at_text(r, map.path);
		if (map.start >= map.end || map.pid <= 0 || map.id.size)
			abort();
	}
	if (perf_record_comm(r, &comm)) {
		look_at_text(r, comm.comm);
		sink ^= comm.pid ^ comm.tid;
	}
	if (perf_record_fork(r, &fork) && (fork.pid <= 0 || fork.tid <= 0))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perf_record record = { .type = PERF_RECORD_SAMPLE };
	struct perf_sample sample;
	bool copy;
	void *body;

	if (!size)
		return 0;
	copy = *data & 1;
	record.misc = *data >> 1 & PERF_RECORD_MISC_CPUMODE_MASK;
	/* The body gets memory of its own size, so that the sanitizer sees a read behind it. */
	record.size = size - 1;
	body = malloc(record.size);
	if (!body)
		return 0;
	memcpy(body, data + 1, record.size);
	record.body = body;
	if (perf_sample_parse(&record, copy, 127, &sample))
		look(&record, &sample, copy);
	look_at_others(&record);
	free(body);
	return 0;
}
