/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * top_view.h - what `shstk top` shows of an interval on a terminal: its functions, threads or processes,
 * or the callers of a function; and the keys by which that is chosen.
 */
#ifndef TOOLS_RECORD_TOP_TOP_VIEW_H
#define TOOLS_RECORD_TOP_TOP_VIEW_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/record/top/top_rows.h"
#include "tools/record/top/shot.h"

#define VIEW_FILTER 64 /* bytes of a filter, with the zero at its end */
#define VIEW_DEPTH 32 /* functions whose callers were asked for one after another */

/**
 * struct top_view - what is shown
 * @choice: what the rows are made of; its filter is @filter.
 * @filter: part of the names of the rows that are shown.
 * @callers: the functions whose callers were asked for, the last one is shown; each to be freed.
 * @nr_callers: number of elements of @callers.
 * @selected: index of the selected row.
 * @first: index of the first row on the screen.
 * @page: number of rows that the screen had room for.
 * @nr: number of rows at the last drawing.
 * @paused: the interval that is shown stays.
 * @help: the keys are explained instead.
 * @typing: keys are added to the filter.
 * @selection: what the selected row stands for, as of the last drawing; its name is to be freed.
 */
struct top_view {
	struct top_choice choice;
	char filter[VIEW_FILTER];
	char *callers[VIEW_DEPTH];
	size_t nr_callers;
	size_t selected;
	size_t first;
	size_t page;
	size_t nr;
	bool paused;
	bool help;
	bool typing;
	struct {
		char *name;
		int pid;
		int tid;
	} selection;
};

void view_init(struct top_view *v);
void view_deinit(struct top_view *v);

/*
 * Does what a key stands for (screen_key()). Returns false if it is for nobody here. Keys that end
 * the program are not looked at, except as part of a filter.
 */
bool view_key(struct top_view *v, int key);

/**
 * view_draw() - draw on the screen
 * @v: what is to be shown.
 * @shot: the interval, or NULL: there was none yet.
 * @status: a line about the recording.
 *
 * Return: 0 or -ENOMEM.
 */
int view_draw(struct top_view *v, const struct top_shot *shot, const char *status);

#endif
