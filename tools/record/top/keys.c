// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * keys.c - the keys that are pressed on a terminal. See keys.h.
 *
 * A key such as an arrow sends several bytes, of which the first is that of Escape. Escape was
 * pressed if nothing has followed it by the next call.
 */
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "tools/record/top/ncurses_screen.h"
#include "tools/record/top/keys.h"

#define ROOM 32 /* bytes that wait, at most */

/* What terminals send for a key, whatever is known about this one. */
static const struct {
	const char *text;
	enum screen_key key;
} usual[] = {
	{ "\033[A", KEY_UP },	{ "\033OA", KEY_UP },	    { "\033[B", KEY_DOWN },
	{ "\033OB", KEY_DOWN }, { "\033[C", KEY_RIGHT },    { "\033OC", KEY_RIGHT },
	{ "\033[D", KEY_LEFT }, { "\033OD", KEY_LEFT },	    { "\033[H", KEY_HOME },
	{ "\033OH", KEY_HOME }, { "\033[1~", KEY_HOME },    { "\033[7~", KEY_HOME },
	{ "\033[F", KEY_END },	{ "\033OF", KEY_END },	    { "\033[4~", KEY_END },
	{ "\033[8~", KEY_END }, { "\033[5~", KEY_PAGE_UP }, { "\033[6~", KEY_PAGE_DOWN },
};

/* What this terminal sends for a key, by the name of its capability. */
static struct {
	const char *capability;
	enum screen_key key;
	char text[CURSES_TEXT];
} own[] = {
	{ "kcuu1", KEY_UP, "" },    { "kcud1", KEY_DOWN, "" },	{ "kcub1", KEY_LEFT, "" },
	{ "kcuf1", KEY_RIGHT, "" }, { "kpp", KEY_PAGE_UP, "" }, { "knp", KEY_PAGE_DOWN, "" },
	{ "khome", KEY_HOME, "" },  { "kend", KEY_END, "" },
};

static struct {
	char bytes[ROOM];
	size_t nr;
	bool waited; /* the last call left the bytes for this one */
} pending;

void keys_prepare(void)
{
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		curses_sequence(own[i].capability, own[i].text);
}

/* Reads what was typed. Returns false if the terminal is gone. */
static bool fill(int fd)
{
	struct pollfd in = { .fd = fd, .events = POLLIN };
	ssize_t n;

	if (pending.nr == ROOM || poll(&in, 1, 0) != 1)
		return true;
	n = read(fd, pending.bytes + pending.nr, ROOM - pending.nr);
	if (n > 0) {
		pending.nr += n;
		pending.waited = false;
	}
	return n > 0 || !(in.revents & (POLLHUP | POLLERR));
}

static int take(size_t size, int key)
{
	pending.nr -= size;
	pending.waited = false;
	memmove(pending.bytes, pending.bytes + size, pending.nr);
	return key;
}

/*
 * Returns the length of @text if the bytes begin with it, or 0. @part is set if they are only the
 * beginning of it.
 */
static size_t match(const char *text, bool *part)
{
	size_t size = strlen(text);

	if (size <= 1 || memcmp(pending.bytes, text, size < pending.nr ? size : pending.nr))
		return 0;
	*part |= pending.nr < size;
	return pending.nr < size ? 0 : size;
}

/* Returns the length of a sequence that is no known key; 0 if it is none or not complete. */
static size_t unknown_length(void)
{
	if (pending.nr < 3 || (pending.bytes[1] != '[' && pending.bytes[1] != 'O'))
		return 0;
	for (size_t i = 2; i < pending.nr; i++)
		if (pending.bytes[i] >= 0x40 && pending.bytes[i] <= 0x7e)
			return i + 1;
	return 0;
}

/* Takes a key whose first byte is that of Escape. */
static int take_sequence(void)
{
	bool part = false;
	size_t size;

	for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++) {
		size = match(usual[i].text, &part);
		if (size)
			return take(size, usual[i].key);
	}
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++) {
		size = match(own[i].text, &part);
		if (size)
			return take(size, own[i].key);
	}
	if (part && !pending.waited) {
		pending.waited = true;
		return KEY_NONE;
	}
	size = unknown_length();
	return size ? take(size, KEY_OTHER) : take(1, KEY_ESCAPE);
}

int keys_read(int fd)
{
	unsigned char c;

	if (!fill(fd))
		return KEY_GONE;
	if (!pending.nr)
		return KEY_NONE;
	c = pending.bytes[0];
	if (c == KEY_ESCAPE)
		return take_sequence();
	if (c == '\r')
		return take(1, KEY_ENTER);
	if (c == '\b')
		return take(1, KEY_BACKSPACE);
	return take(1, c ? c : KEY_OTHER);
}
