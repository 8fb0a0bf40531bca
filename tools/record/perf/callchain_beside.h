/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * callchain_beside.h - the callchain of user space that a walker wrote beside a sample which has none.
 *
 * The kernel follows frame pointers for each sample before the walker runs, and that takes as long as a walk. So
 * samples are asked for without, and only those that are taken get it (bpf/callchain.h).
 */
#ifndef TOOLS_RECORD_PERF_CALLCHAIN_BESIDE_H
#define TOOLS_RECORD_PERF_CALLCHAIN_BESIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/walk.h"
#include "tools/perf/sample.h"

#define CALLCHAIN_BESIDE_MAX (2 * WALK_ENTRIES) /* entries of both parts, with their marks */

/**
 * struct callchain_beside - the callchain that was written last
 * @tid: its thread; 0: there is none.
 * @nr: its entries, which are the last ones of @chain. The first is PERF_CONTEXT_USER.
 * @chain: room for a sample's own entries in front of it.
 */
struct callchain_beside {
	int tid;
	size_t nr;
	uint64_t chain[CALLCHAIN_BESIDE_MAX];
};

/* Takes a record that a walker wrote beside a sample of thread @tid. Returns whether it is a callchain. */
bool callchain_beside_take(struct callchain_beside *b, int tid, const void *record, size_t size);

/*
 * Gives the sample the callchain, if it is the sample's and this has no part of user space. It stays there until
 * the next one is taken.
 */
void callchain_beside_add(struct callchain_beside *b, struct perf_sample *sample);

#endif
