/* SPDX-License-Identifier: GPL-2.0-or-later */
/* top_rows.h - the samples of an interval summed up by function, thread, process or caller. */
#ifndef TOOLS_RECORD_TOP_TOP_ROWS_H
#define TOOLS_RECORD_TOP_TOP_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libshstk/symbol/hash.h"
#include "tools/record/top/shot.h"

/* What a row stands for. */
enum rows_kind { ROWS_FUNCTIONS, ROWS_THREADS, ROWS_PROCESSES, ROWS_CALLERS };

/* By which column rows are sorted. */
enum rows_sort { SORT_SELF, SORT_TOTAL, SORT_NAME, SORTS };

/**
 * struct top_choice - which rows are made
 * @kind: what a row stands for.
 * @sort: by which column they are sorted.
 * @filter: rows whose names do not contain this text, in letters of any case, are left out.
 * @callers_of: the function whose callers ROWS_CALLERS shows.
 * @pid: only samples of this process; -1: of all.
 * @tid: only samples of this thread; -1: of all.
 */
struct top_choice {
	enum rows_kind kind;
	enum rows_sort sort;
	const char *filter;
	const char *callers_of;
	int pid;
	int tid;
};

/**
 * struct top_row - a row
 * @hh: link in a table while rows are made.
 * @key: what the row stands for; the members that it does not need are NULL or -1.
 * @name: what is shown.
 * @self: value of the function itself, thread or process; the value of a caller's calls.
 * @total: value of a function with callees.
 * @seen: the last sample that was counted in @total.
 */
struct top_row {
	UT_hash_handle hh;
	struct {
		const char *function;
		int pid;
		int tid;
	} key;
	const char *name;
	int64_t self;
	int64_t total;
	const struct top_shot_sample *seen;
};

/**
 * struct top_rows - all rows
 * @pool: their memory.
 * @table: the rows, sorted, without those that the filter leaves out.
 * @nr: number of rows.
 * @whole: the value that counts as 100 %.
 */
struct top_rows {
	struct shstk_pool pool;
	struct top_row *table;
	size_t nr;
	int64_t whole;
};

/* Makes the rows. Returns 0 or -ENOMEM; rows_deinit() is called in both cases. */
int rows_make(const struct top_shot *shot, const struct top_choice *choice, struct top_rows *rows);
void rows_deinit(struct top_rows *rows);

#endif
