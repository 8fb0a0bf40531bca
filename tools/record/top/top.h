/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * top.h - shows the hottest functions while they are recorded: on a screen that is drawn again if
 * standard output is a terminal, otherwise as one table after another.
 */
#ifndef TOOLS_RECORD_TOP_TOP_H
#define TOOLS_RECORD_TOP_TOP_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/record/backend.h"
#include "tools/record/top/shot.h"
#include "tools/record/top/top_view.h"

/**
 * struct top - what `shstk top` shows
 * @screen: whether the table is drawn on a terminal's screen.
 * @next: CLOCK_MONOTONIC in ns, when the next table is due.
 * @renewed: CLOCK_MONOTONIC in ns, when the symbols were last thrown away and begun anew.
 * @text: the last table, or NULL.
 * @size: bytes in @text.
 * @shot: the interval that the screen shows, or NULL.
 * @view: what the screen shows of it.
 */
struct top {
	bool screen;
	uint64_t next;
	uint64_t renewed;
	char *text;
	size_t size;
	struct top_shot *shot;
	struct top_view view;
};

/* Begins the first interval. Takes the terminal if standard output can be drawn on. */
void top_begin(struct top *t, const struct recording *r);

/**
 * top_update() - show the table of the last interval, if that interval is over
 * @t: what is shown.
 * @r: the recording, whose profile is emptied after the table is made.
 * @at: CLOCK_MONOTONIC in ns.
 *
 * Return: 0; -ENOMEM; -EPIPE if standard output takes no more.
 */
int top_update(struct top *t, struct recording *r, uint64_t at);

/*
 * Draws the screen again, because its size has changed. Does nothing without a screen. Returns 0 or
 * -ENOMEM.
 */
int top_draw(struct top *t, const struct recording *r);

/* What the keys that were pressed ask the caller to do. */
enum top_wish { TOP_GO_ON, TOP_END, TOP_GONE };

/*
 * Does what the keys stand for that were pressed. Returns TOP_END for q, TOP_GONE if there is no
 * terminal any more.
 */
enum top_wish top_keys(struct top *t, const struct recording *r);

/* Gives the terminal back and leaves the last table on it. Called before recording is complete. */
void top_leave(struct top *t);

/*
 * Prints the samples of the last, unfinished interval and releases @t's memory. Returns 0 or a
 * negative errno.
 */
int top_end(struct top *t, struct recording *r);

#endif
