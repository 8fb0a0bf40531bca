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
 * @regex: compiled.
 * @known: what it says of each location of the profile: 0: not asked yet, 1: no, 2: yes.
 * @nr: elements of @known, and of @cut.
 * @cut: the location that is left of each when a stack is cut at it, from 1; 0: not asked yet.
 */
struct pattern {
	bool set;
	regex_t regex;
	uint8_t *known;
	uint32_t *cut;
	size_t nr;
};

/**
 * struct filter - which samples
 * @focus: taken are stacks with such a function.
 * @ignore: not taken are stacks with such a function.
 * @callers_of: taken are stacks with such a function, from it outwards.
 * @callees_of: taken are stacks with such a function, from it inwards.
 * @stack: a stack that was cut.
 * @max_stack: room in it for so many entries.
 * @thread: taken are threads of such a name.
 * @pid: of this process; 0: of all.
 * @tid: of this thread; 0: of all.
 * @frames_only: as in &struct shstk_read_opts.
 * @type: name of the kind of values that is shown, or NULL.
 */
struct filter {
	struct pattern focus;
	struct pattern ignore;
	struct pattern callers_of;
	struct pattern callees_of;
	uint32_t *stack;
	size_t max_stack;
	struct pattern thread;
	unsigned long pid;
	unsigned long tid;
	bool frames_only;
	const char *type;
};

/* Parses --focus and the others: a child for argp(3), whose input is a struct filter. */
extern const struct argp filter_argp;

/* Is a sample of a profile that is being read wanted? Its stack is cut as the filter says. */
bool filter_takes(struct filter *filter, struct shstk_profile *profile,
		  struct shstk_sample *sample);
void filter_deinit(struct filter *filter);

/* A copy of a filter is to be used for another profile: what it knows of the first is not its own. */
void filter_fork(struct filter *copy);
/* Give back what such a copy has learnt. */
void filter_forget(struct filter *copy);

/**
 * filter_type() - the kind of values that is shown
 * @filter: as the options say.
 * @profile: what was read.
 * @ret: receives its number from 1.
 *
 * Return: EXIT_OK; or EXIT_USAGE, and it was said why.
 */
int filter_type(const struct filter *filter, const struct shstk_profile *profile,
		unsigned int *ret);

#endif
