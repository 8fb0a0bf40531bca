/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/report/screen_name.h - names and widths of text for a terminal.
 */
#ifndef TOOLS_REPORT_SCREEN_NAME_H
#define TOOLS_REPORT_SCREEN_NAME_H

#include <stddef.h>

#define SCREEN_NAME_MAX 16384

/* Columns of a line on standard output: of the terminal, or 80 for everything else. */
unsigned int screen_width(void);

/**
 * screen_name() - a function's name that fits
 * @name: the name, of a profile.
 * @room: characters that there are; at least 8 are used.
 * @buf: memory for it, SCREEN_NAME_MAX bytes.
 *
 * Cut to what tells, as in tables; and if that is still too long, in its middle.
 *
 * Return: @name or @buf.
 */
const char *screen_name(const char *name, size_t room, char *buf);

#endif
