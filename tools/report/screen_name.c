// SPDX-License-Identifier: GPL-2.0-or-later
/* screen_name.c - names for a terminal, as screen_name.h describes. */
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "libshstk/symbol/symbol.h"
#include "tools/report/screen_name.h"

#define WIDTH 80
#define LEAST 8
#define CUT ".."

unsigned int screen_width(void)
{
	struct winsize size;

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_col < 40)
		return WIDTH;
	return size.ws_col;
}

static size_t characters(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

/* Returns the place behind the first @n characters. */
static const char *behind(const char *text, size_t n)
{
	for (; *text; text++)
		if ((*text & 0xc0) != 0x80 && !n--)
			break;
	return text;
}

const char *screen_name(const char *name, size_t room, char *buf)
{
	const char *label, *tail;
	size_t all, keep, head;

	if (room < LEAST)
		room = LEAST;
	if (characters(name) <= room)
		return name;
	label = shstk_label(name, room, buf, SCREEN_NAME_MAX);
	all = characters(label);
	if (all <= room)
		return label;
	keep = room - strlen(CUT);
	tail = behind(label, all - keep / 2);
	head = behind(label, keep - keep / 2) - label;
	if (head + strlen(CUT) + strlen(tail) >= SCREEN_NAME_MAX)
		return label;
	memmove(buf, label, head);
	memmove(buf + head + strlen(CUT), tail, strlen(tail) + 1);
	memcpy(buf + head, CUT, strlen(CUT));
	return buf;
}
