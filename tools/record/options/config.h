/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * config.h - options of `shstk record` that are in a file (--config).
 *
 * Each line is a long option without its hyphens, NAME = VALUE or NAME. Blanks at both ends and
 * around the = are passed over, and so are empty lines and those that begin with #. There are no
 * quotes: a value goes to the end of its line.
 */
#ifndef TOOLS_RECORD_OPTIONS_CONFIG_H
#define TOOLS_RECORD_OPTIONS_CONFIG_H

#include <argp.h>

/**
 * config_read() - parse the options that are in a file
 * @state: the parser that met --config.
 * @argp: the options that there are.
 * @input: its input, in which options may be set that point into memory that is never freed.
 * @path: the file.
 *
 * Does not return if there is an error: a message names the file and the line, and the process ends
 * with EXIT_USAGE.
 */
void config_read(const struct argp_state *state, const struct argp *argp, void *input,
		 const char *path);

#endif
