/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * screen.h - draws a text on the terminal again and again, and reads the keys that are pressed
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

/* Returns whether standard output is a terminal that can be drawn on. */
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

/**
 * screen_draw() - show a text in the place of the one before
 * @text: lines in UTF-8, without control characters. What does not fit on the screen is left out.
 * @size: bytes in @text.
 *
 * If the terminal takes no more (Ctrl-S), the function does not wait for it and leaves out the
 * rest.
 */
void screen_draw(const char *text, size_t size);

/* Returns the key that was pressed, 0 if there was none, -1 if the terminal is gone. */
int screen_key(void);

#endif
