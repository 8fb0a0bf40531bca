/* SPDX-License-Identifier: GPL-2.0-or-later */
/* annotate.h - the source and the instructions of one function, with the samples at each line. */
#ifndef TOOLS_REPORT_ANNOTATE_H
#define TOOLS_REPORT_ANNOTATE_H

#include <argp.h>
#include <stdbool.h>

#include "libshstk/symbol/profile.h"

/**
 * struct annotate - what is to be shown
 * @function: name of the function, or NULL: nothing.
 * @assembly: show the instructions, too.
 * @source_dir: folder in which source files are looked for first, or NULL.
 * @full_names: lines are not cut on a terminal; set by the command.
 * @type: index of the value type; set by the command.
 * @file: name of the profile for messages; set by the command.
 */
struct annotate {
	const char *function;
	bool assembly;
	const char *source_dir;
	bool full_names;
	unsigned int type;
	const char *file;
};

/*
 * Parses --annotate, --assembly and --source-dir: a child for argp(3), whose input is a struct
 * annotate.
 */
extern const struct argp annotate_argp;

/**
 * annotate_print() - print what is known about a function to standard output
 * @profile: the profile.
 * @what: what is to be shown.
 *
 * Source files are shown around the lines that have samples. Lines of a file that can't be read are
 * empty, and a line above them says why.
 *
 * Return: an exit status; on failure after a message.
 */
int annotate_print(const struct shstk_profile *profile, const struct annotate *what);

#endif
