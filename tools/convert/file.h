/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * file.h - hands the records of a perf.data file to the converter (convert.h).
 */
#ifndef TOOLS_CONVERT_FILE_H
#define TOOLS_CONVERT_FILE_H

#include "tools/convert/convert.h"
#include "tools/perf/data.h"

/**
 * struct convert_file - a file that is converted
 * @pd: the file.
 * @event: the event whose samples are wanted.
 * @convert: the converter.
 * @sample: takes samples of @event instead of @convert; returns 0 or what ends the conversion. May
 *	be NULL.
 * @arg: passed to @sample.
 * @first: time of the first sample in ns. This and the members below are set during conversion.
 * @last: time of the last sample in ns.
 * @without: samples without a part of user space.
 * @compat: samples of 32-bit code that have no callchain.
 * @others: samples of other events.
 * @lost: records that perf lost.
 */
struct convert_file {
	struct perfdata *pd;
	const struct perfdata_event *event;
	struct converter *convert;
	int (*sample)(void *arg, const struct perf_sample *s);
	void *arg;
	uint64_t first;
	uint64_t last;
	uint64_t without;
	uint64_t compat;
	uint64_t others;
	uint64_t lost;
};

/* Returns what stacks of the event's samples are made of. */
enum stack_source convert_file_source(const struct perfdata_event *event);

/* Hands over all records in the order of time. Returns 0 or a negative errno. */
int convert_file(struct convert_file *f);

#endif
