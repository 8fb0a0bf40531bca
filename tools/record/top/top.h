/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * top.h - the hottest functions while they are recorded: a screen on a terminal, else one
 * table after another.
 */
#ifndef TOOLS_RECORD_TOP_TOP_H
#define TOOLS_RECORD_TOP_TOP_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/record/backend.h"

/**
 * struct top - what is shown
 * @screen: on a terminal.
 * @next: CLOCK_MONOTONIC in ns, when the table is made anew.
 * @renewed: when symbols were begun anew.
 * @text: the last table,
 * @size: bytes of it.
 */
struct top {
	bool screen;
	uint64_t next;
	uint64_t renewed;
	char *text;
	size_t size;
};

void top_begin(struct top *t, const struct recording *r);

/**
 * top_update() - make the table of the last interval, if that is over
 * @t: what is shown.
 * @r: the recording, whose profile begins anew.
 * @at: CLOCK_MONOTONIC in ns.
 *
 * Return: 0; -ENOMEM; -EPIPE: standard output takes no more.
 */
int top_update(struct top *t, struct recording *r, uint64_t at);

/* Draws the table again, if there is a screen: its size has changed. */
void top_draw(const struct top *t, const struct recording *r);

/* Gives back the terminal, where the last table stays. Before all is complete. */
void top_leave(struct top *t);

/* The rest, and releases what is there. Returns 0 or a negative errno. */
int top_end(struct top *t, struct recording *r);

#endif
