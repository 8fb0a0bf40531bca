/* SPDX-License-Identifier: GPL-2.0-or-later */
/* keys.h - the keys that are pressed on a terminal, of which some send several bytes. */
#ifndef TOOLS_RECORD_TOP_KEYS_H
#define TOOLS_RECORD_TOP_KEYS_H

/**
 * enum screen_key - keys that are no characters
 * @KEY_NONE: no key was pressed.
 * @KEY_GONE: the terminal is gone.
 * @KEY_OTHER: a key without a meaning here.
 */
enum screen_key {
	KEY_GONE = -1,
	KEY_NONE = 0,
	KEY_TAB = '\t',
	KEY_ENTER = '\n',
	KEY_ESCAPE = '\033',
	KEY_BACKSPACE = 0x7f,
	KEY_UP = 256,
	KEY_DOWN,
	KEY_LEFT,
	KEY_RIGHT,
	KEY_PAGE_UP,
	KEY_PAGE_DOWN,
	KEY_HOME,
	KEY_END,
	KEY_OTHER,
};

/* Finds out what this terminal sends for keys. curses_open() has been called. */
void keys_prepare(void);

/* Returns the next byte of a character, or an enum screen_key. Does not wait. */
int keys_read(int fd);

#endif
