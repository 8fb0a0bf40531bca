// SPDX-License-Identifier: GPL-2.0-or-later
/* printable_line.c - foreign text for a terminal, as printable_line.h describes. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "libshstk/symbol/bidi.h"
#include "libshstk/symbol/utf8.h"
#include "tools/report/printable_line.h"

#define TAB 8
#define CUT ".."

/**
 * struct shown - how one character of a text is shown
 * @cell: what is printed.
 * @columns: number of columns that @cell takes.
 * @bytes: number of bytes of the text that @cell stands for, at least 1.
 */
struct shown {
	char cell[16];
	size_t columns;
	size_t bytes;
};

/* Returns whether a character other than those of ASCII does something to a terminal. */
static bool is_harmful(uint32_t point)
{
	return (point >= 0x80 && point < 0xa0) || point == 0x2028 || point == 0x2029 ||
	       shstk_is_bidi(point);
}

/* Returns how the character at @s is shown if it begins in column @column. */
static struct shown show(const unsigned char *s, size_t len, size_t column)
{
	struct shown ret = { .bytes = 1 };
	uint32_t point;
	size_t n = shstk_utf8_decode(s, len, &point);

	if (*s == '\t') {
		ret.columns = TAB - column % TAB;
		memset(ret.cell, ' ', ret.columns);
		return ret;
	}
	if (n > 1)
		ret.bytes = n;
	if (!n || point < ' ' || point == 0x7f) {
		ret.columns = snprintf(ret.cell, sizeof(ret.cell), "\\x%02x", *s);
	} else if (is_harmful(point)) {
		ret.columns = snprintf(ret.cell, sizeof(ret.cell), "\\u%04x", (unsigned int)point);
	} else {
		memcpy(ret.cell, s, n);
		ret.columns = 1;
	}
	return ret;
}

/* Returns the number of columns of a text; it stops counting when they are more than @room. */
static size_t count(const unsigned char *text, size_t len, size_t room)
{
	size_t column = 0;

	for (size_t i = 0; i < len && column <= room;) {
		const struct shown shown = show(text + i, len - i, column);

		column += shown.columns;
		i += shown.bytes;
	}
	return column;
}

void printable_line(const char *text, size_t len, size_t room)
{
	const unsigned char *bytes = (const unsigned char *)text;
	const bool cut = count(bytes, len, room) > room;
	const size_t most = cut ? room - strlen(CUT) : room;
	size_t column = 0;

	for (size_t i = 0; i < len;) {
		const struct shown shown = show(bytes + i, len - i, column);

		if (column + shown.columns > most)
			break;
		fputs(shown.cell, stdout);
		column += shown.columns;
		i += shown.bytes;
	}
	puts(cut ? CUT : "");
}
