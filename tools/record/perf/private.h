/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * private.h - what the files of a recording by perf events share.
 *
 *	perf.c    begins and ends, hands records to the converter
 *	scope.c   which processes are recorded
 *	adapt.c   opens other rings while recording, and why
 *	sums.c    what the kernel counted and lost, over all these rings
 */
#ifndef TOOLS_RECORD_PERF_PRIVATE_H
#define TOOLS_RECORD_PERF_PRIVATE_H

#include "tools/bpf/walker.h"
#include "tools/convert/convert.h"
#include "tools/perf/write.h"
#include "tools/record/perf/gomoments.h"
#include "tools/record/perf/adapt.h"
#include "tools/record/perf/perf.h"
#include "tools/record/perf/scope.h"
#include "tools/record/perf/sums.h"

/**
 * struct perf_drain - a recording
 * @rings: the rings that are open. Replaced by adapt.c alone.
 * @opts: as they are opened, but for the targets; @opts.ring_size is that for copies of
 *	PERF_FIRST_COPY bytes. Changed by adapt.c alone.
 * @since: samples from before that time, ns, are of earlier rings, which gave them already.
 * @convert: makes the profile. What stacks are made of is changed by adapt.c.
 * @scope: who is recorded.
 * @adapt: what of that was changed so far.
 * @sums: what the kernel counted.
 * @wakers: takes the records of who ends times off the CPU apart, or NULL. The caller's.
 * @walker: walks stacks in the kernel, or NULL. The caller's.
 * @moments: what a BPF program copies beside samples, or NULL. Set by adapt.c.
 * @chains: callchains are exact where there is a shadow stack. Set when it begins.
 * @writer: receives all records, until it ends; or NULL.
 * @unwritten: 0, or a negative errno: the writer's file is not complete. Set when it ends.
 */
struct perf_drain {
	struct perf_rings *rings;
	struct perf_opts opts;
	uint64_t since;
	struct converter *convert;
	struct scope scope;
	struct adapt adapt;
	struct sums sums;
	struct wakers *wakers;
	const struct walker *walker;
	struct gomoments *moments;
	bool chains;
	struct perf_writer *writer;
	int unwritten;
};

/* Takes a record of the rings; for perf_rings_read(). */
int perf_drain_record(void *arg, const struct perf_record *r);

#endif
