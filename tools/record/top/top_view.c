// SPDX-License-Identifier: GPL-2.0-or-later
/* top_view.c - what `shstk top` shows on a terminal, and its keys. See top_view.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/record/top/keys.h"
#include "tools/record/top/screen.h"
#include "tools/record/top/top_view.h"
#include "tools/report/screen_name.h"

#define HEAD 3 /* lines above the rows: what is shown, the recording, names of the columns */
#define FOOT 1 /* lines below them: the filter, or some keys */
#define LINE 4096 /* bytes of a line */

static const char *const help[] = {
	"Up Down PgUp PgDn Home End, j k   choose a row",
	"Enter    callers of the function; functions of the thread or process",
	"Esc      back",
	"f        functions",
	"t        threads",
	"P        processes",
	"/        filter by name: type a part of it, Enter keeps it, Esc removes it",
	"s        next order: by self, with callees, by name",
	"p        pause: the interval stays, recording goes on",
	"?        this page; any key leaves it",
	"q        end",
};

void view_init(struct top_view *v)
{
	*v = (struct top_view){ .choice = { .pid = -1, .tid = -1 }, .page = 1 };
	v->choice.filter = v->filter;
}

void view_deinit(struct top_view *v)
{
	while (v->nr_callers)
		free(v->callers[--v->nr_callers]);
	free(v->selection.name);
	v->selection.name = NULL;
}

/* ---- Keys ---- */

static void to_first(struct top_view *v)
{
	v->selected = v->first = 0;
}

/* Shows all functions, threads or processes. */
static void show_all(struct top_view *v, enum rows_kind kind)
{
	while (v->nr_callers)
		free(v->callers[--v->nr_callers]);
	v->choice.kind = kind;
	v->choice.callers_of = NULL;
	v->choice.pid = v->choice.tid = -1;
	to_first(v);
}

static void drop_filter(struct top_view *v)
{
	*v->filter = '\0';
	to_first(v);
}

/* Adds a byte to the filter. */
static void type(struct top_view *v, char c)
{
	size_t size = strlen(v->filter);

	if (size + 1 == VIEW_FILTER)
		return;
	v->filter[size] = c;
	v->filter[size + 1] = '\0';
	to_first(v);
}

/* Takes the last character off the filter. In UTF-8 its other bytes begin with the bits 10. */
static void untype(struct top_view *v)
{
	size_t size = strlen(v->filter);

	while (size && (v->filter[--size] & 0xc0) == 0x80)
		;
	v->filter[size] = '\0';
	to_first(v);
}

static void filter_key(struct top_view *v, int key)
{
	if (key == KEY_ESCAPE)
		drop_filter(v);
	if (key == KEY_ESCAPE || key == KEY_ENTER)
		v->typing = false;
	else if (key == KEY_BACKSPACE)
		untype(v);
	else if (key >= ' ' && key < KEY_UP)
		type(v, key);
}

static void show_callers(struct top_view *v, const char *function)
{
	char *name = v->nr_callers < VIEW_DEPTH ? strdup(function) : NULL;

	if (!name)
		return;
	v->callers[v->nr_callers++] = name;
	v->choice.callers_of = name;
	v->choice.kind = ROWS_CALLERS;
	drop_filter(v);
}

/* Goes from the selected row to what lies behind it. */
static void enter(struct top_view *v)
{
	if (!v->selection.name)
		return;
	if (v->choice.kind == ROWS_FUNCTIONS || v->choice.kind == ROWS_CALLERS) {
		show_callers(v, v->selection.name);
		return;
	}
	v->choice.pid = v->selection.pid;
	v->choice.tid = v->selection.tid;
	v->choice.kind = ROWS_FUNCTIONS;
	drop_filter(v);
}

/* Goes back by one step: from callers, from a filter, from a thread or process. */
static void leave(struct top_view *v)
{
	enum rows_kind kind = v->choice.tid >= 0 ? ROWS_THREADS : ROWS_PROCESSES;

	if (*v->filter) {
		drop_filter(v);
	} else if (v->nr_callers) {
		free(v->callers[--v->nr_callers]);
		v->choice.callers_of = v->nr_callers ? v->callers[v->nr_callers - 1] : NULL;
		v->choice.kind = v->nr_callers ? ROWS_CALLERS : ROWS_FUNCTIONS;
		to_first(v);
	} else if (v->choice.pid >= 0) {
		show_all(v, kind);
	}
}

/* Moves the selection by @by rows. view_draw() keeps it among those that there are. */
static void move(struct top_view *v, long by)
{
	long at = (long)v->selected + by;

	v->selected = at < 0 ? 0 : at;
}

static bool moving_key(struct top_view *v, int key)
{
	if (key == KEY_UP || key == 'k')
		move(v, -1);
	else if (key == KEY_DOWN || key == 'j')
		move(v, 1);
	else if (key == KEY_PAGE_UP)
		move(v, -(long)v->page);
	else if (key == KEY_PAGE_DOWN)
		move(v, v->page);
	else if (key == KEY_HOME)
		v->selected = 0;
	else if (key == KEY_END)
		v->selected = v->nr;
	else
		return false;
	return true;
}

static bool choosing_key(struct top_view *v, int key)
{
	switch (key) {
	case KEY_ENTER:
		enter(v);
		return true;
	case KEY_ESCAPE:
		leave(v);
		return true;
	case 'f':
		show_all(v, ROWS_FUNCTIONS);
		return true;
	case 't':
		show_all(v, ROWS_THREADS);
		return true;
	case 'P':
		show_all(v, ROWS_PROCESSES);
		return true;
	case 's':
		v->choice.sort = (v->choice.sort + 1) % SORTS;
		to_first(v);
		return true;
	default:
		return false;
	}
}

bool view_key(struct top_view *v, int key)
{
	if (v->help) {
		v->help = false;
		return true;
	}
	if (v->typing) {
		filter_key(v, key);
		return true;
	}
	if (key == '?')
		v->help = true;
	else if (key == '/')
		v->typing = true;
	else if (key == 'p')
		v->paused = !v->paused;
	else
		return moving_key(v, key) || choosing_key(v, key);
	return true;
}

/* ---- Drawing ---- */

/* Writes what is shown of which samples. */
static void put_title(const struct top_view *v, const struct top_shot *shot, unsigned int columns)
{
	static const char *const kinds[] = { "functions", "threads", "processes", "callers of " };
	const bool callers = v->choice.kind == ROWS_CALLERS;
	char text[LINE + SCREEN_NAME_MAX], total[32], buf[SCREEN_NAME_MAX], of[32] = "";
	size_t used;

	shstk_format_value(total, sizeof(total), shot ? shot->total : 0, shot ? shot->unit : "");
	if (v->choice.tid >= 0)
		snprintf(of, sizeof(of), ", thread %d", v->choice.tid);
	else if (v->choice.pid >= 0)
		snprintf(of, sizeof(of), ", process %d", v->choice.pid);
	used = snprintf(text, LINE, "%s%s, %s in all: %s", v->paused ? "PAUSED  " : "",
			shot ? shot->type : "nothing", total, kinds[v->choice.kind]);
	columns = columns > used + strlen(of) ? columns - used - strlen(of) : 0;
	snprintf(text + used, sizeof(text) - used, "%s%s",
		 callers ? screen_name(v->choice.callers_of, columns, buf) : "", of);
	screen_line(0, text, CURSES_BOLD);
}

/* Writes the names of the columns; a star is at the one by which rows are sorted. */
static void put_columns(const struct top_view *v)
{
	const char *const star[] = {
		v->choice.sort == SORT_SELF ? "*" : "",
		v->choice.sort == SORT_TOTAL ? "*" : "",
		v->choice.sort == SORT_NAME ? "*" : "",
	};
	char text[256], self[16], total[16];

	snprintf(self, sizeof(self), "%sself", star[SORT_SELF]);
	snprintf(total, sizeof(total), "%swith callees", star[SORT_TOTAL]);
	switch (v->choice.kind) {
	case ROWS_THREADS:
		snprintf(text, sizeof(text), "%8s %8s %12s %6s  %sthread", "pid", "tid", "value",
			 "%", star[SORT_NAME]);
		break;
	case ROWS_PROCESSES:
		snprintf(text, sizeof(text), "%8s %12s %6s  %sprocess", "pid", "value", "%",
			 star[SORT_NAME]);
		break;
	case ROWS_CALLERS:
		snprintf(text, sizeof(text), "%12s %6s  %scaller", "value", "%", star[SORT_NAME]);
		break;
	default:
		snprintf(text, sizeof(text), "%12s %6s %13s %6s  %sfunction", self, "%", total, "%",
			 star[SORT_NAME]);
	}
	screen_line(HEAD - 1, text, CURSES_REVERSE);
}

static double percent(int64_t part, int64_t whole)
{
	return whole ? 100.0 * part / whole : 0;
}

/* Writes the columns before the name to @text. Returns how many characters these are. */
static size_t format_numbers(const struct top_view *v, const struct top_shot *shot,
			     const struct top_rows *rows, const struct top_row *row, char *text,
			     size_t size)
{
	char self[32], total[32];
	double share = percent(row->self, rows->whole);

	shstk_format_value(self, sizeof(self), row->self, shot->unit);
	shstk_format_value(total, sizeof(total), row->total, shot->unit);
	switch (v->choice.kind) {
	case ROWS_THREADS:
		return snprintf(text, size, "%8d %8d %12s %6.2f  ", row->key.pid, row->key.tid,
				self, share);
	case ROWS_PROCESSES:
		return snprintf(text, size, "%8d %12s %6.2f  ", row->key.pid, self, share);
	case ROWS_CALLERS:
		return snprintf(text, size, "%12s %6.2f  ", self, share);
	default:
		return snprintf(text, size, "%12s %6.2f %13s %6.2f  ", self, share, total,
				percent(row->total, rows->whole));
	}
}

/* Remembers what the selected row stands for. */
static void select_row(struct top_view *v, const struct top_row *row)
{
	free(v->selection.name);
	v->selection.name = row ? strdup(row->name) : NULL;
	v->selection.pid = row ? row->key.pid : -1;
	v->selection.tid = row ? row->key.tid : -1;
}

static void put_rows(struct top_view *v, const struct top_shot *shot, const struct top_rows *rows,
		     unsigned int columns)
{
	char text[LINE + SCREEN_NAME_MAX], buf[SCREEN_NAME_MAX];
	const struct top_row *row = rows->table;
	size_t n = 0;

	select_row(v, NULL);
	for (; row && n < v->first + v->page; row = row->hh.next, n++) {
		size_t used;

		if (n < v->first)
			continue;
		used = format_numbers(v, shot, rows, row, text, LINE);
		snprintf(text + used, sizeof(text) - used, "%s",
			 screen_name(row->name, columns > used ? columns - used : 0, buf));
		if (n == v->selected)
			select_row(v, row);
		screen_line(HEAD + n - v->first, text,
			    n == v->selected ? CURSES_REVERSE : CURSES_PLAIN);
	}
}

/* Keeps the selection among the rows, and on the screen. */
static void limit_selection(struct top_view *v)
{
	if (v->selected >= v->nr)
		v->selected = v->nr ? v->nr - 1 : 0;
	if (v->selected < v->first)
		v->first = v->selected;
	if (v->selected >= v->first + v->page)
		v->first = v->selected - v->page + 1;
}

static void put_help(unsigned int rows)
{
	for (size_t i = 0; i < sizeof(help) / sizeof(*help) && i < rows; i++)
		screen_line(i, help[i], CURSES_PLAIN);
}

static void put_foot(const struct top_view *v, unsigned int row)
{
	char text[LINE];

	if (v->typing || *v->filter)
		snprintf(text, sizeof(text), "/%s%s", v->filter, v->typing ? "_" : "");
	else
		snprintf(text, sizeof(text),
			 "q: end  ?: help  /: filter  s: sort  p: pause  t: threads  P: processes");
	screen_line(row, text, CURSES_PLAIN);
}

/* Draws the rows of the choice. Returns 0 or -ENOMEM. */
static int draw_rows(struct top_view *v, const struct top_shot *shot, unsigned int columns)
{
	struct top_rows rows;
	int err = rows_make(shot, &v->choice, &rows);

	if (!err) {
		v->nr = rows.nr;
		limit_selection(v);
		put_rows(v, shot, &rows, columns);
	}
	rows_deinit(&rows);
	return err;
}

int view_draw(struct top_view *v, const struct top_shot *shot, const char *status)
{
	unsigned int rows, columns;
	int err = 0;

	screen_begin(&rows, &columns);
	v->page = rows > HEAD + FOOT + 1 ? rows - HEAD - FOOT : 1;
	if (v->help) {
		put_help(rows);
	} else {
		put_title(v, shot, columns);
		screen_line(1, shot && shot->caution ? shot->caution : status, CURSES_PLAIN);
		put_columns(v);
		if (shot)
			err = draw_rows(v, shot, columns);
		put_foot(v, rows - 1);
	}
	screen_end();
	return err;
}
