/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sample_counts.h - counts of a recording's samples. The back ends of the agent and of perf events
 * fill them in.
 */
#ifndef TOOLS_RECORD_SAMPLE_COUNTS_H
#define TOOLS_RECORD_SAMPLE_COUNTS_H

#include <stdint.h>

#include "tools/language/languages.h"

/**
 * struct sample_counts - counts of the samples that were taken so far, by agents or by perf events
 * @samples: samples in the profile.
 * @weight: time that the samples stand for, in ns.
 * @late: the part of @weight, in ns of CPU time, that the kernel's ticks noticed only after it
 *	passed.
 * @truncated: samples whose outermost frames are missing.
 * @folded: samples of deep stacks that were shortened by an agent.
 * @lost: samples that were lost because a ring was full.
 * @lost_weight: time that the lost samples stand for, in ns.
 * @threads: threads that were sampled.
 * @lost_threads: threads that lost samples.
 * @processes: processes that the agent entered, forked children included.
 * @images: programs that the agent entered; each exec counts.
 * @no_slot: threads that were not sampled because there were too many at once.
 * @left_out: records that were left out because there were too many processes before.
 * @no_timer: threads that were not sampled because the kernel gave no timer.
 * @sandboxed: threads and processes that were not sampled because a seccomp filter may forbid it.
 * @damaged: how often invalid content made the rest of a ring be skipped.
 * @stretch: most periods between two samples of a thread that waits, if above 1.
 * @interpreted: samples of which an agent read, or could not read, frames of an interpreter.
 * @refused: why functions are not shown, or NULL.
 */
struct sample_counts {
	uint64_t samples;
	uint64_t weight;
	uint64_t late;
	uint64_t truncated;
	uint64_t folded;
	uint64_t lost;
	uint64_t lost_weight;
	uint32_t threads;
	uint32_t lost_threads;
	uint32_t processes;
	uint32_t images;
	uint32_t no_slot;
	uint64_t left_out;
	uint32_t no_timer;
	uint32_t sandboxed;
	uint32_t damaged;
	uint32_t stretch;
	struct language_counts interpreted;
	const char *refused;
};

#endif
