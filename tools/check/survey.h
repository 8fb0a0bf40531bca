/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * survey.h - which objects of a whole system keep how many of its programs from shadow
 * stacks.
 */
#ifndef TOOLS_CHECK_SURVEY_H
#define TOOLS_CHECK_SURVEY_H

#include <stdbool.h>

#include "libshstk/symbol/json.h"

/**
 * struct survey_opts - what to look at, and what to show
 * @root: folder that stands for "/", or NULL.
 * @packages: ask dpkg who owns the objects.
 * @all: all objects, not only those that matter most.
 * @json: where JSON goes; NULL: a table is printed.
 */
struct survey_opts {
	const char *root;
	bool packages;
	bool all;
	struct json *json;
};

/*
 * Check all programs below /usr, /opt, /bin and /sbin. Returns the number of those that are not
 * marked with all they load; or a negative errno.
 */
long survey(const struct survey_opts *opts);

#endif
