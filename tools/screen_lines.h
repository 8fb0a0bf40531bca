/* SPDX-License-Identifier: GPL-2.0-or-later */
/* screen_lines.h - lines of standard output that fit a terminal. */
#ifndef TOOLS_SCREEN_LINES_H
#define TOOLS_SCREEN_LINES_H

/**
 * screen_lines_fit() - make what is printed on standard output from now on fit the terminal
 *
 * A line that is too long goes on in further lines, which begin below its second column (what
 * stands behind two blanks or more), else a bit further in than the line itself. It is broken at
 * blanks; a word that is too long by itself is shortened in its middle, as names are
 * (shstk_short_name()). Call this once, before anything is printed, and not for JSON: that is to be
 * copied. Does nothing if standard output is no terminal, or memory runs out.
 */
void screen_lines_fit(void);

#endif
