/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/report/filter.h - which samples of a profile are taken, for `shstk report` and
 * `shstk diff`.
 */
#ifndef TOOLS_REPORT_FILTER_H
#define TOOLS_REPORT_FILTER_H

#include <argp.h>
#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include "libshstk/symbol/profile.h"

/**
 * struct pattern - a regular expression for names
 * @set: there is one.
 * @regex: the compiled expression.
 * @known: whether each location of the profile matches: 0: not known yet, 1: no, 2: yes.
 * @cut: the location that replaces each location when a stack is cut at it, from 1; 0: none yet.
 * @nr: number of elements of @known, and of @cut.
 */
struct pattern {
	bool set;
	regex_t regex;
	uint8_t *known;
	uint32_t *cut;
	size_t nr;
};

/**
 * struct filter - which samples are taken
 * @focus: only stacks with such a function are taken.
 * @ignore: stacks with such a function are not taken.
 * @callers_of: only stacks with such a function are taken, from it outwards.
 * @callees_of: only stacks with such a function are taken, from it inwards.
 * @stack: buffer for a stack that was cut.
 * @max_stack: number of entries that @stack has room for.
 * @thread: only threads with such a name are taken.
 * @cgroup: only samples with such a control group or container are taken.
 * @trace: only samples of the trace with this id are taken; "": all.
 * @traced: samples with the id of a trace were read.
 * @timed: only samples in a range of time are taken.
 * @from: beginning of the range, in ns since the recording began.
 * @to: end of the range, in ns since the recording began; samples at this time are not taken.
 * @origin: time of the first sample, which is the beginning where the file does not tell it.
 * @untimed: samples without a time were left out because of @timed.
 * @pid: only this process is taken; 0: all.
 * @tid: only this thread is taken; 0: all.
 * @frames_only: as in &struct shstk_read_opts.
 * @type: name of the value type that is shown, or NULL: the default one.
 */
struct filter {
	struct pattern focus;
	struct pattern ignore;
	struct pattern callers_of;
	struct pattern callees_of;
	uint32_t *stack;
	size_t max_stack;
	struct pattern thread;
	struct pattern cgroup;
	char trace[33];
	bool traced;
	bool timed;
	uint64_t from;
	uint64_t to;
	uint64_t origin;
	bool untimed;
	unsigned long pid;
	unsigned long tid;
	bool frames_only;
	const char *type;
};

/*
 * Parses --focus and the other options of a filter: a child for argp(3), whose input is a struct
 * filter.
 */
extern const struct argp filter_argp;

/*
 * Returns whether a sample of a profile that is being read is taken. Its stack is cut as the filter
 * says.
 */
bool filter_takes(struct filter *filter, struct shstk_profile *profile,
		  struct shstk_sample *sample);
/*
 * Returns whether the beginning or the end of a process is taken. What is asked of stacks, threads and
 * labels is not asked of it: formats show it if samples of its process are taken.
 */
bool filter_takes_life(struct filter *filter, const struct shstk_profile *profile,
		       const struct shstk_life *life);
void filter_deinit(struct filter *filter);

/* Begins with the samples of another file: their times are since its own beginning. */
void filter_next_file(struct filter *filter);

/* Returns whether times are there if they are asked for, or else says that they are not. */
bool filter_had_times(const struct filter *filter, const char *path);

/*
 * Returns whether a sample of all files that were read has the id of a trace, if that is asked for, or
 * else says that none has.
 */
bool filter_had_traces(const struct filter *filter);

/*
 * Prepares a copy of a filter for another profile: it drops the results of the first profile, which
 * still belong to the original.
 */
void filter_fork(struct filter *copy);
/* Releases the results of a copy that filter_fork() prepared. */
void filter_forget(struct filter *copy);

/**
 * filter_type() - choose the value type that is shown
 * @filter: the filter.
 * @profile: the profile that was read.
 * @ret: receives the number of the type from 1.
 *
 * Return: EXIT_OK; or EXIT_USAGE after a message that says why.
 */
int filter_type(const struct filter *filter, const struct shstk_profile *profile,
		unsigned int *ret);

#endif
