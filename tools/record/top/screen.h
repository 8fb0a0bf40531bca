/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * screen.h - a text that is drawn again and again on the terminal, and the keys that are
 * pressed meanwhile.
 *
 * The text is shown on the terminal's second screen, so that the first one, and all other
 * settings, are there again afterwards: also if this process is stopped, fails or crashes.
 * Only SIGKILL leaves no time for that.
 */
#ifndef TOOLS_RECORD_TOP_SCREEN_H
#define TOOLS_RECORD_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

/* Is standard output a terminal that can be drawn on? */
bool screen_possible(void);

/* Takes the terminal. */
void screen_enter(void);

/* Gives it back as it was. Does nothing if it was not taken. */
void screen_leave(void);

/* Stops this process as Ctrl-Z does (SIGTSTP must be blocked), with the terminal given back until it goes on. */
void screen_suspend(void);

/* Columns of the terminal @fd now. */
unsigned int screen_columns(int fd);

/* Bytes of the first @columns characters of a line of @size bytes. */
size_t screen_fit(const char *line, size_t size, unsigned int columns);

/* Size of the terminal now. */
void screen_size(unsigned int *rows, unsigned int *columns);

/**
 * screen_draw() - show a text instead of the one before
 * @text: lines in UTF-8, without control characters; what does not fit is left out.
 * @size: bytes of it.
 *
 * A terminal that takes no more (Ctrl-S) is not waited for: the rest is left out.
 */
void screen_draw(const char *text, size_t size);

/* The key that was pressed; 0: none, -1: there is no terminal any more. */
int screen_key(void);

#endif
