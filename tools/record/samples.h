/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * samples.h - the profile of samples and the lines about it. The back ends of the agent and of perf
 * events share them.
 */
#ifndef TOOLS_RECORD_SAMPLES_H
#define TOOLS_RECORD_SAMPLES_H

#include <stddef.h>

#include "tools/record/sample_counts.h"
#include "tools/record/backend.h"

/* Makes the recording's profile and symbols. Returns 0 or a negative errno. */
int samples_begin(struct recording *r);

/**
 * struct samples_left - processes that outlive the command and are not recorded further
 * @text: names of the first ones, for the line that reports them.
 * @length: bytes in @text.
 * @named: number of processes that are named in @text.
 * @nr: number of all such processes.
 */
struct samples_left {
	char text[400];
	size_t length;
	unsigned int named;
	unsigned int nr;
};

/* Adds process @pid to @left, which is a struct samples_left. */
void samples_name_left(void *left, int pid);

/* Prints a warning with the processes of @left, if there are any. */
void samples_report_left(struct recording *r, const struct samples_left *left);

/* Writes the counts so far to @buf: "12 samples, 0 lost, 1 thread, 1 process, 1.2 s". */
void samples_describe(const struct recording *r, const struct sample_counts *c, char *buf,
		      size_t size);

/**
 * samples_sum() - write how much was sampled: "0.33 of 1.24 s CPU time"
 * @o: the options.
 * @c: counts of the samples.
 * @whole: the whole of which this is a part, in ns of CPU time or in events; 0 if it is not known.
 * @buf: receives the text.
 * @size: bytes in @buf.
 */
void samples_sum(const struct record_opts *o, const struct sample_counts *c, uint64_t whole,
		 char *buf, size_t size);

/**
 * samples_report() - print the last line, after everything is written
 * @r: the recording.
 * @c: counts of the samples.
 * @who: how the samples were taken, such as "in process".
 * @whole: the whole of which the samples are a part, in ns of CPU time or in events; 0 if it is not
 *	known.
 */
void samples_report(const struct recording *r, const struct sample_counts *c, const char *who,
		    uint64_t whole);

/*
 * Reports how many stacks of interpreters have the functions of their programs, and why those of others
 * have not; NULL: there is no reason.
 */
struct language_counts;
void samples_report_interpreted(struct recording *r, const struct language_counts *n,
				const char *refused);

#endif
