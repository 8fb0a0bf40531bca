/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perf_recording_private.h - what the files of a recording by perf events share.
 *
 *	perf_recording.c   begins and ends, and hands records to the converter
 *	scope.c            which processes are recorded
 *	adapt.c            opens other rings while recording, when there is a reason
 *	late.c             finds threads that began while rings were being opened
 *	sums.c             what the kernel counted and lost, over all these rings
 *	vary.c             periods for threads that are shorter than a period
 *	losses.c           says which CPUs lost most
 *	callchain_beside.c callchains that the walker writes beside samples
 */
#ifndef TOOLS_RECORD_PERF_PERF_RECORDING_PRIVATE_H
#define TOOLS_RECORD_PERF_PERF_RECORDING_PRIVATE_H

#include "tools/bpf/walker.h"
#include "tools/convert/convert.h"
#include "tools/perf/write.h"
#include "tools/record/perf/gomoments.h"
#include "tools/record/perf/adapt.h"
#include "tools/record/perf/callchain_beside.h"
#include "tools/record/perf/late.h"
#include "tools/record/perf/perf_recording.h"
#include "tools/record/perf/scope.h"
#include "tools/record/perf/sums.h"
#include "tools/record/perf/vary.h"

/**
 * struct perf_recording - a recording by perf events
 * @rings: the rings that are open. Only adapt.c replaces them.
 * @opts: the options of @rings, except the targets. @opts.ring_size is the size for copies of
 *	perf_first_copy() bytes. Only adapt.c changes them.
 * @until: CLOCK_MONOTONIC in ns, when earlier rings were closed. What @rings have from before that
 *	time may have been taken from those. Each thread remembers its last sample instead of one time
 *	for all, since events are stopped one after the other, and the recorder may have to wait for a
 *	CPU at any moment.
 * @next: rings that record already while the earlier @rings are read to their end, or NULL.
 * @convert: the converter, which makes the profile. adapt.c changes its source of stacks.
 * @scope: the processes that are recorded.
 * @adapt: what is known for changes by adapt.c.
 * @late: threads that began while rings were being opened.
 * @sums: what the kernel counted and lost.
 * @vary: periods of threads that begin, if they vary already (@vary.step).
 * @wakers: takes the records about who ends times off the CPU, or NULL. The caller's.
 * @walker: walks stacks in the kernel, or NULL. The caller's. adapt.c sets it, too.
 * @later: becomes @walker, unless it is NULL. The caller's. Only adapt.c changes it.
 * @began: CLOCK_MONOTONIC in ns, when recording began.
 * @looked: CLOCK_MONOTONIC in ns, when the rings were read last while it was looked around.
 * @languages: the languages whose functions are shown, or NULL. The caller's.
 * @contexts: trace contexts of threads, or NULL. The caller's.
 * @reading: frames of interpreters are read at samples. Set by adapt.c.
 * @beside: the callchain that the walker wrote beside a sample.
 * @moments: what a BPF program copies beside samples, or NULL. Set by adapt.c.
 * @chains: callchains are exact where there is a shadow stack. Set when recording begins.
 * @writer: writes all records to a perf.data file until recording ends, or NULL.
 * @unwritten: 0, or a negative errno if the file is not complete. Set when recording ends.
 */
struct perf_recording {
	struct perf_rings *rings;
	struct perf_opts opts;
	uint64_t until;
	const struct perf_rings *next;
	struct converter *convert;
	struct scope scope;
	struct adapt adapt;
	struct late late;
	struct sums sums;
	struct vary vary;
	struct wakers *wakers;
	struct walker *walker;
	struct walker *later;
	uint64_t began;
	uint64_t looked;
	struct languages *languages;
	struct contexts *contexts;
	bool reading;
	struct callchain_beside beside;
	struct gomoments *moments;
	bool chains;
	struct perf_writer *writer;
	int unwritten;
};

/* Tells a walker that is about to begin which of the known processes it is to leave alone. */
void perf_recording_leave(struct perf_recording *d);

/*
 * Tells the program that the broker lends with the rings of now how frames of interpreters are found in
 * the processes that have one. Does nothing where another program reads these.
 */
void perf_recording_tell(struct perf_recording *d);

/*
 * Takes what is in the rings; @all as perf_rings_read() says. No sample waits for its stack after that.
 * Returns 0 or a negative errno.
 */
int perf_recording_read(struct perf_recording *d, bool all);

#endif
