/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * samples.h - the profile of samples, and the lines about it: what is alike for the
 * agent and for perf events.
 */
#ifndef TOOLS_RECORD_SAMPLES_H
#define TOOLS_RECORD_SAMPLES_H

#include <stddef.h>

#include "tools/record/agent/drain.h"
#include "tools/record/backend.h"

/* Makes the profile. Returns 0 or a negative errno. */
int samples_begin(struct recording *r);

/**
 * struct samples_left - processes that go on unrecorded
 * @text: names of the first ones, for the line.
 * @length: of it.
 * @named: how many these are,
 * @nr: of so many.
 */
struct samples_left {
	char text[400];
	size_t length;
	unsigned int named;
	unsigned int nr;
};

/* @left: struct samples_left; process @pid is one more. */
void samples_name_left(void *left, int pid);

/* A line, if there are any. */
void samples_report_left(struct recording *r, const struct samples_left *left);

/* How far it is: "12 samples, 0 lost, 1 thread, 1 process, 1.2 s". */
void samples_describe(const struct recording *r, const struct drain_counts *c, char *buf,
		      size_t size);

/**
 * samples_sum() - how much was sampled: "0.33 of 1.24 s CPU time"
 * @o: what was asked for.
 * @c: what came.
 * @whole: of how much: ns of CPU time or events, 0 if that is not known.
 * @buf: receives it.
 * @size: bytes in @buf.
 */
void samples_sum(const struct record_opts *o, const struct drain_counts *c, uint64_t whole,
		 char *buf, size_t size);

/**
 * samples_report() - the last line, when all is written
 * @r: the recording.
 * @c: what came.
 * @who: took the samples: "in process".
 * @whole: as for samples_sum().
 */
void samples_report(const struct recording *r, const struct drain_counts *c, const char *who,
		    uint64_t whole);

#endif
