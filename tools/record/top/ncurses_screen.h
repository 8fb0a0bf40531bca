/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ncurses_screen.h - ncurses, loaded when a screen is drawn.
 *
 * The library draws into a file in memory, from which screen.c copies to the terminal: the recorder
 * may not wait for a terminal that takes nothing more (Ctrl-S), as samples would be lost meanwhile.
 */
#ifndef TOOLS_RECORD_TOP_NCURSES_SCREEN_H
#define TOOLS_RECORD_TOP_NCURSES_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#define CURSES_TEXT 64 /* bytes of an escape sequence, at most */

/**
 * enum curses_style - how a line is drawn
 * @CURSES_PLAIN: as other text.
 * @CURSES_BOLD: bright.
 * @CURSES_REVERSE: with the colours of text and background exchanged.
 */
enum curses_style { CURSES_PLAIN, CURSES_BOLD, CURSES_REVERSE };

/**
 * curses_open() - load the library, and what it knows about the terminal of standard output
 *
 * Return: true if the terminal can be drawn on; false if there is no libncursesw.so.6, or nothing
 * is known about the terminal that TERM names, or its cursor cannot be moved. The first call
 * decides.
 */
bool curses_open(void);

/*
 * Copies the escape sequence of a capability, such as "rmcup", to @buf, which has CURSES_TEXT bytes;
 * an empty text if the terminal has none.
 */
void curses_sequence(const char *capability, char *buf);

/* Sets the size of the terminal. */
void curses_resize(unsigned int rows, unsigned int columns);

/* Empties the picture that curses_show() draws next. */
void curses_clear(void);

/*
 * Puts a text in UTF-8 into a row of the picture, from its first column on. What does not fit is
 * left out. Bytes that are no characters, and control characters, are shown as U+FFFD.
 */
void curses_put(unsigned int row, const char *text, enum curses_style style);

/**
 * curses_show() - draw the picture
 * @whole: the terminal shows something else than the picture before: all is drawn.
 * @size: receives the number of bytes.
 *
 * Return: what is to be written to the terminal, to be freed, or NULL.
 */
char *curses_show(bool whole, size_t *size);

#endif
