/* SPDX-License-Identifier: GPL-2.0-or-later */
/* printable_line.h - a line of foreign text, made safe for a terminal. */
#ifndef TOOLS_REPORT_PRINTABLE_LINE_H
#define TOOLS_REPORT_PRINTABLE_LINE_H

#include <stddef.h>

/* Number of columns of the longest line that is printed anywhere but on a terminal. */
#define PRINTABLE_LINE_MOST 2000

/**
 * printable_line() - print a line of foreign text and a line break to standard output
 * @text: bytes of the line, which may be of any kind.
 * @len: number of bytes.
 * @room: number of columns that the line may take, at least 4. A longer line is cut, and ".." stands
 *	at its end.
 *
 * Tabs become blanks up to the next multiple of 8. Control characters and bytes that are no UTF-8
 * are shown as \x1b, characters that change the direction of writing as \u202e.
 */
void printable_line(const char *text, size_t len, size_t room);

#endif
