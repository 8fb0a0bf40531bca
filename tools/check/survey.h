/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * survey.h - counts which objects of a system keep how many of its programs from shadow stacks.
 */
#ifndef TOOLS_CHECK_SURVEY_H
#define TOOLS_CHECK_SURVEY_H

#include <stdbool.h>

#include "libshstk/symbol/json.h"

/**
 * struct survey_opts - what to check, and what to print
 * @root: folder that stands for "/", or NULL.
 * @packages: ask dpkg who owns the objects.
 * @all: print all objects, not only those that block most programs.
 * @json: receives JSON; NULL: a table is printed.
 */
struct survey_opts {
	const char *root;
	bool packages;
	bool all;
	struct json *json;
};

/*
 * Checks all programs below /usr, /opt, /bin and /sbin. Returns the number of those that are not
 * marked with everything that they load, and of files and folders that cannot be read; or a negative
 * errno, -ENOENT if there are no programs.
 */
long survey(const struct survey_opts *opts);

#endif
