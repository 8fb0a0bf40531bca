/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/report/screen_name.h - names and widths of text for a terminal.
 */
#ifndef TOOLS_REPORT_SCREEN_NAME_H
#define TOOLS_REPORT_SCREEN_NAME_H

#include <stddef.h>

#define SCREEN_NAME_MAX 16384

/*
 * Returns the number of columns of a line on standard output: of the terminal, or 80 for anything
 * else.
 */
unsigned int screen_width(void);

/**
 * screen_name() - shorten a function's name so that it fits
 * @name: the name, of a profile.
 * @room: number of characters that fit; at least 8 are used.
 * @buf: memory for the shortened name, SCREEN_NAME_MAX bytes.
 *
 * The name is shortened as in tables; if it is still too long, it is cut in its middle.
 *
 * Return: @name or @buf.
 */
const char *screen_name(const char *name, size_t room, char *buf);

#endif
