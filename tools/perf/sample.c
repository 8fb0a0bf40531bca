// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sample.c - takes the record of a sample apart. Any content is expected, also a hostile one. See
 * sample.h.
 */
#include <linux/perf_event.h>
#include <string.h>

#include "bpf/walk.h"
#include "tools/perf/regs.h"
#include "tools/perf/sample.h"

/* The words of a record that were not taken yet. */
struct record_words {
	const uint64_t *at;
	size_t left;
};

static bool take(struct record_words *w, uint64_t *ret)
{
	if (!w->left)
		return false;
	*ret = *w->at++;
	w->left--;
	return true;
}

/* Takes @nr words. Returns where they are, or NULL if there are not that many. */
static const uint64_t *skip(struct record_words *w, uint64_t nr)
{
	const uint64_t *at = w->at;

	if (nr > w->left)
		return NULL;
	w->at += nr;
	w->left -= nr;
	return at;
}

/* Takes what PERF_SAMPLE_READ adds: what the event counted, and how many of its samples were lost. */
static bool take_count(struct record_words *w, struct perf_sample *s)
{
	uint64_t lost;

	return take(w, &s->counted) && take(w, &lost);
}

static bool take_regs(struct record_words *w, struct perf_sample *s)
{
	uint64_t mask = perf_regs_wanted(), value;

	if (!take(w, &s->abi) || s->abi > PERF_SAMPLE_REGS_ABI_64)
		return false;
	if (!s->abi)
		return true;
	s->regs = (struct shstk_regs){ .size = sizeof(s->regs) };
	for (unsigned int i = 0; i < PERF_MAX_REGS; i++) {
		if (!(mask & 1ull << i))
			continue;
		if (!take(w, &value))
			return false;
		perf_regs_set(perf_regs_arch(), i, value, &s->regs);
	}
	return true;
}

static bool take_stack(struct record_words *w, struct perf_sample *s)
{
	uint64_t size, used;
	const uint64_t *at;

	if (!take(w, &size))
		return false;
	if (!size)
		return true;
	at = size % 8 ? NULL : skip(w, size / 8);
	if (!at || !take(w, &used))
		return false;
	s->stack = (const uint8_t *)at;
	s->stack_ends = used < size;
	s->stack_size = s->stack_ends ? used : size;
	return true;
}

/* Takes the record that a walker wrote apart. Returns false if it is invalid. */
static bool parse_walked(const struct perf_record *record, struct perf_sample *ret)
{
	const struct walk_chain *c = record->body;

	if (record->size < sizeof(*c) || c->nr > (record->size - sizeof(*c)) / sizeof(*ret->chain))
		return false;
	ret->walked = true;
	if (!ret->period)
		ret->period = c->period;
	ret->guesses = c->guesses;
	ret->end = c->end;
	ret->max_chain = SIZE_MAX;
	ret->nr = c->nr;
	ret->chain = (const uint64_t *)(c + 1);
	return true;
}

bool perf_sample_parse(const struct perf_record *record, bool copy, size_t max_chain,
		       struct perf_sample *ret)
{
	struct record_words w = { record->body, record->size / 8 };

	*ret = (struct perf_sample){
		.pid = record->pid,
		.tid = record->tid,
		.time = record->time,
		.cpu = record->cpu + 1,
		.period = record->period,
		.user_mode = (record->misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
			     PERF_RECORD_MISC_USER,
		.max_chain = max_chain,
	};
	if (record->walked)
		return parse_walked(record, ret);
	if ((!ret->period && !take(&w, &ret->period)) ||
	    (record->tells_count && !take_count(&w, ret)) || !take(&w, &ret->nr))
		return false;
	ret->chain = skip(&w, ret->nr);
	if (!ret->chain)
		return false;
	return !copy || (take_regs(&w, ret) && take_stack(&w, ret));
}

struct callchain perf_sample_user(const struct perf_sample *sample)
{
	struct callchain ret = { .max = sample->max_chain };
	uint64_t i;

	for (i = 0; i < sample->nr && sample->chain[i] != PERF_CONTEXT_USER; i++)
		ret.max -= ret.max && sample->chain[i] < PERF_CONTEXT_MAX;
	if (i == sample->nr)
		return ret;
	ret.ips = sample->chain + i + 1;
	while (++i < sample->nr && sample->chain[i] < PERF_CONTEXT_MAX)
		ret.nr++;
	return ret;
}
