// SPDX-License-Identifier: GPL-2.0-or-later
/* top_rows.c - the samples of an interval, summed up. See top_rows.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libshstk/symbol/export.h"
#include "tools/record/top/top_rows.h"

/* Returns the row for a key, which is made if there is none; NULL when memory runs out. */
static struct top_row *get_row(struct top_rows *rows, const char *function, int pid, int tid,
			       const char *name)
{
	struct top_row *row, search = { .key = { function, pid, tid } };

	HASH_FIND(hh, rows->table, &search.key, sizeof(search.key), row);
	if (row)
		return row;
	row = shstk_pool_alloc(&rows->pool, sizeof(*row));
	if (!row)
		return NULL;
	row->key = search.key;
	row->name = name;
	HASH_ADD(hh, rows->table, key, sizeof(row->key), row);
	return row->hh.tbl ? row : NULL;
}

static void count_whole(struct top_rows *rows, int64_t value)
{
	rows->whole = shstk_add(rows->whole, value > -INT64_MAX ? llabs(value) : INT64_MAX);
}

/* A recursive function counts once in each sample. */
static void count_total(struct top_row *row, const struct top_shot_sample *sample)
{
	if (row->seen != sample)
		row->total = shstk_add(row->total, sample->value);
	row->seen = sample;
}

static bool add_functions(struct top_rows *rows, const struct top_shot_sample *sample)
{
	for (size_t i = 0; i < sample->nr; i++) {
		struct top_row *row =
			get_row(rows, sample->functions[i], -1, -1, sample->functions[i]);

		if (!row)
			return false;
		if (!i)
			row->self = shstk_add(row->self, sample->value);
		count_total(row, sample);
	}
	count_whole(rows, sample->value);
	return true;
}

/* Adds the callers of @function in a sample. What has none there is called by its thread. */
static bool add_callers(struct top_rows *rows, const struct top_shot_sample *sample,
			const char *function)
{
	bool any = false;

	for (size_t i = 0; i < sample->nr; i++) {
		const char *caller = i + 1 < sample->nr ? sample->functions[i + 1] : "(none)";
		struct top_row *row;

		if (sample->functions[i] != function)
			continue;
		row = get_row(rows, caller, -1, -1, caller);
		if (!row)
			return false;
		count_total(row, sample);
		row->self = row->total;
		any = true;
	}
	if (any)
		count_whole(rows, sample->value);
	return true;
}

static bool add_task(struct top_rows *rows, const struct top_shot_sample *sample, int tid)
{
	struct top_row *row = get_row(rows, NULL, sample->pid, tid, sample->comm);

	if (!row)
		return false;
	/* A process is called as its first thread is. */
	if (sample->tid == sample->pid)
		row->name = sample->comm;
	row->self = row->total = shstk_add(row->self, sample->value);
	count_whole(rows, sample->value);
	return true;
}

static bool add_sample(struct top_rows *rows, const struct top_shot_sample *sample,
		       const struct top_choice *choice, const char *function)
{
	switch (choice->kind) {
	case ROWS_THREADS:
		return add_task(rows, sample, sample->tid);
	case ROWS_PROCESSES:
		return add_task(rows, sample, -1);
	case ROWS_CALLERS:
		return add_callers(rows, sample, function);
	default:
		return add_functions(rows, sample);
	}
}

static int by_name(const struct top_row *a, const struct top_row *b)
{
	int ret = strcasecmp(a->name, b->name);

	if (ret)
		return ret;
	if (a->key.pid != b->key.pid)
		return a->key.pid < b->key.pid ? -1 : 1;
	return (a->key.tid > b->key.tid) - (a->key.tid < b->key.tid);
}

static int by_self(const struct top_row *a, const struct top_row *b)
{
	if (a->self != b->self)
		return a->self > b->self ? -1 : 1;
	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	return by_name(a, b);
}

static int by_total(const struct top_row *a, const struct top_row *b)
{
	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	return by_self(a, b);
}

static void leave_out(struct top_rows *rows, const char *filter)
{
	struct top_row *row, *next;

	HASH_ITER(hh, rows->table, row, next)
	if (!strcasestr(row->name, filter))
		HASH_DEL(rows->table, row);
}

int rows_make(const struct top_shot *shot, const struct top_choice *choice, struct top_rows *rows)
{
	static int (*const orders[])(const struct top_row *, const struct top_row *) = {
		[SORT_SELF] = by_self,
		[SORT_TOTAL] = by_total,
		[SORT_NAME] = by_name,
	};
	const char *function = NULL;

	*rows = (struct top_rows){ 0 };
	shstk_pool_init(&rows->pool);
	/* Names are the same pointers only within an interval. */
	if (choice->kind == ROWS_CALLERS)
		function = shot_name(shot, choice->callers_of);
	for (size_t i = 0; i < shot->nr; i++) {
		const struct top_shot_sample *sample = &shot->samples[i];

		if ((choice->pid >= 0 && sample->pid != choice->pid) ||
		    (choice->tid >= 0 && sample->tid != choice->tid))
			continue;
		if (!add_sample(rows, sample, choice, function))
			return -ENOMEM;
	}
	leave_out(rows, choice->filter);
	HASH_SORT(rows->table, orders[choice->sort]);
	rows->nr = HASH_COUNT(rows->table);
	return 0;
}

void rows_deinit(struct top_rows *rows)
{
	HASH_CLEAR(hh, rows->table);
	shstk_pool_deinit(&rows->pool);
}
