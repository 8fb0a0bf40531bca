/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/report/screen_name.h - names and widths of text for a terminal.
 */
#ifndef TOOLS_REPORT_SCREEN_NAME_H
#define TOOLS_REPORT_SCREEN_NAME_H

#include "libshstk/symbol/symbol.h"

#define SCREEN_NAME_MAX SHSTK_LABEL_MAX

/*
 * Returns the number of columns of a line on standard output: of the terminal, or 80 for anything
 * else.
 */
unsigned int screen_width(void);

/* As screen_width(), but 0, no limit, for anything else than a terminal. */
unsigned int screen_limit(void);

/* Shortens a function's name so that it fits: shstk_short_name(). */
static inline const char *screen_name(const char *name, size_t room, char *buf)
{
	return shstk_short_name(name, room, buf);
}

#endif
