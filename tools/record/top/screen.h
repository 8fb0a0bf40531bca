/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * screen.h - draws lines on the terminal again and again, and reads the keys that are pressed
 * meanwhile.
 *
 * The text is shown on the terminal's second screen (the alternate screen). The first screen and
 * all settings are restored afterwards, also if this process is stopped, fails or crashes. Only
 * SIGKILL leaves no time for that.
 */
#ifndef TOOLS_RECORD_TOP_SCREEN_H
#define TOOLS_RECORD_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/record/top/ncurses_screen.h"

/* Returns whether standard output is a terminal that may be drawn on. */
bool screen_wanted(void);

/* Returns whether, besides, there is what is needed to draw on it (curses_open()). */
bool screen_possible(void);

/* Switches the terminal to the second screen and standard input to single keys without echo. */
void screen_enter(void);

/* Gives the terminal back as it was before screen_enter(). Does nothing if it was not taken. */
void screen_leave(void);

/*
 * Stops this process as Ctrl-Z does. The terminal is given back until the process goes on. The
 * caller must have blocked SIGTSTP.
 */
void screen_suspend(void);

/* Returns how many columns the terminal @fd has now; 80 if that is not known. */
unsigned int screen_columns(int fd);

/* Returns how many of the @size bytes at @line are its first @columns characters. */
size_t screen_fit(const char *line, size_t size, unsigned int columns);

/* Returns the present size of the terminal on standard output. */
void screen_size(unsigned int *rows, unsigned int *columns);

/* Begins a new picture, and returns the present size of the terminal. */
void screen_begin(unsigned int *rows, unsigned int *columns);

/* Puts a line of UTF-8 into the picture. What does not fit is left out. */
void screen_line(unsigned int row, const char *text, enum curses_style style);

/*
 * Shows the picture. If the terminal takes no more (Ctrl-S), this does not wait for it and leaves
 * out the rest.
 */
void screen_end(void);

/* Returns the next byte or key that was pressed (enum screen_key), without waiting. */
int screen_key(void);

#endif
