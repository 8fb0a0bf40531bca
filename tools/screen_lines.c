// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * screen_lines.c - lines of standard output that fit a terminal, as screen_lines.h describes.
 *
 * The stream stdout is replaced by one that hands lines to the stream that it was before.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/screen_name.h"
#include "tools/screen_lines.h"

#define MOST_INDENT 20 /* columns before the second column of a line, if it has one */
#define INDENT 4 /* of further lines of a line without columns */

/**
 * struct screen_lines - the lines that are being printed
 * @out: the stream of the terminal.
 * @width: columns of the terminal.
 * @text: begin of a line whose end was not printed yet.
 * @size: bytes in @text.
 * @max: bytes that @text has room for.
 */
static struct screen_lines {
	FILE *out;
	size_t width;
	char *text;
	size_t size;
	size_t max;
} lines;

/* Returns the number of characters in @size bytes of UTF-8. */
static size_t characters(const char *text, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < size; i++)
		n += (text[i] & 0xc0) != 0x80;
	return n;
}

/* Returns the column in which a line goes on. */
static size_t indent_of(const char *line)
{
	const size_t blanks = strspn(line, " ");
	const char *gap = strstr(line + blanks, "  ");
	size_t second;

	if (gap) {
		second = characters(line, gap - line) + strspn(gap, " ");
		if (second <= MOST_INDENT)
			return second;
	}
	return (blanks < MOST_INDENT ? blanks : MOST_INDENT) + INDENT;
}

/* Prints a word of @size bytes in at most @room columns. Returns how many it took. */
static size_t put_word(const char *word, size_t size, size_t room)
{
	char name[SCREEN_NAME_MAX], *copy = NULL;
	const char *text = word;

	if (characters(word, size) > room)
		copy = strndup(word, size);
	if (copy) {
		text = screen_name(copy, room, name);
		size = strlen(text);
	}
	fwrite(text, 1, size, lines.out);
	size = characters(text, size);
	free(copy);
	return size;
}

/* Prints a line of any length, without its line break. */
static void put_line(const char *line)
{
	const size_t indent = indent_of(line);
	size_t column = 0;

	while (*line) {
		const size_t blanks = strspn(line, " ");
		const size_t size = strcspn(line + blanks, " ");
		const size_t needed = blanks + characters(line + blanks, size);
		const bool next = column + needed > lines.width && column + blanks > indent;

		if (!size)
			break;
		if (next && column)
			putc('\n', lines.out);
		column = next ? indent : column + blanks;
		fprintf(lines.out, "%*s", (int)(next ? indent : blanks), "");
		column += put_word(line + blanks, size, lines.width - column);
		line += blanks + size;
	}
}

/* Adds to the line that is being printed. Returns false when memory runs out. */
static bool add(const char *text, size_t size)
{
	char *more;

	if (size >= lines.max - lines.size) {
		more = realloc(lines.text, 2 * (lines.size + size) + 1);
		if (!more)
			return false;
		lines.text = more;
		lines.max = 2 * (lines.size + size) + 1;
	}
	memcpy(lines.text + lines.size, text, size);
	lines.size += size;
	lines.text[lines.size] = '\0';
	return true;
}

/* Prints what was added. */
static void end_line(void)
{
	if (lines.size && characters(lines.text, lines.size) <= lines.width)
		fwrite(lines.text, 1, lines.size, lines.out);
	else if (lines.size)
		put_line(lines.text);
	lines.size = 0;
}

/* Takes what is printed, as fopencookie(3) says. */
static ssize_t take(void *cookie, const char *text, size_t size)
{
	const char *end = text + size, *at = text, *next;

	(void)cookie;
	for (; (next = memchr(at, '\n', end - at)); at = next + 1) {
		if (!add(at, next - at))
			return 0;
		end_line();
		putc('\n', lines.out);
	}
	if (!add(at, end - at))
		return 0;
	return fflush(lines.out) || ferror(lines.out) ? 0 : (ssize_t)size;
}

/* Prints a last line that has no line break. */
static void finish(void)
{
	fflush(stdout);
	end_line();
	fflush(lines.out);
}

void screen_lines_fit(void)
{
	const cookie_io_functions_t calls = { .write = take };
	FILE *fitting;

	lines.width = screen_limit();
	if (!lines.width)
		return;
	fitting = fopencookie(NULL, "w", calls);
	if (!fitting || atexit(finish)) {
		if (fitting)
			fclose(fitting);
		return;
	}
	setvbuf(fitting, NULL, _IOLBF, BUFSIZ);
	lines.out = stdout;
	stdout = fitting;
}
