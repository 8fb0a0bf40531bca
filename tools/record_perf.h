/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * record_perf.h - `shstk record` with the kernel's eyes: samples of
 * perf_event_open(2), whose callchains shstk_perf.ko takes from shadow stacks.
 */
#ifndef TOOLS_RECORD_PERF_H
#define TOOLS_RECORD_PERF_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/perf_rings.h"
#include "tools/record.h"

/**
 * struct perf_record_opts - what to record
 * @rings: events and targets; @rings.pids are processes here, whose threads are
 *	looked up.
 * @keep_times: keep the time of each sample.
 */
struct perf_record_opts {
	struct perf_opts rings;
	bool keep_times;
};

/**
 * struct perf_counts - what came, beside what struct drain_counts has
 * @cut: samples with as many entries as a callchain may have.
 * @throttled: times that the kernel held the event back.
 */
struct perf_counts {
	uint64_t cut;
	uint64_t throttled;
};

struct perf_drain;

/**
 * perf_drain_create() - begin
 * @opts: what to record.
 * @symbols: names what is found.
 * @profile: receives the samples: a count, and the event's or the time.
 * @ret: receives it.
 * @err: receives one line that says why not.
 * @size: bytes in @err.
 *
 * Return: 0 or a negative errno.
 */
int perf_drain_create(const struct perf_record_opts *opts,
		      struct shstk_symbols *symbols,
		      struct shstk_profile *profile, struct perf_drain **ret,
		      char *err, size_t size);
void perf_drain_destroy(struct perf_drain *d);

/* Takes what is in the rings. Returns 0 or -ENOMEM. */
int perf_drain_take(struct perf_drain *d);

/* No more samples from now on; takes what is left. */
int perf_drain_stop(struct perf_drain *d);

/* Number of the processes given that still live. */
unsigned int perf_drain_alive(const struct perf_drain *d);

/* Only user mode is sampled, because more is not permitted. */
bool perf_drain_user_only(const struct perf_drain *d);

void perf_drain_count(const struct perf_drain *d, struct drain_counts *ret,
		      struct perf_counts *more);

#endif
