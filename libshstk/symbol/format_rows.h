/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* format_rows.h - numbers for things that a format lists once and then refers to by number. */
#ifndef SHSTK_FORMAT_ROWS_H
#define SHSTK_FORMAT_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "hash.h"
#include "pool.h"

#define SHSTK_ROW_KEY 4

/**
 * struct shstk_row - a thing that has a number
 * @hh: link in the table.
 * @key: what tells the thing from others: pointers of the pool of texts, and numbers.
 * @id: number of the thing.
 */
struct shstk_row {
	UT_hash_handle hh;
	uintptr_t key[SHSTK_ROW_KEY];
	size_t id;
};

/**
 * struct shstk_rows - a table of numbered things
 * @rows: the things, by key.
 * @nr: number of things.
 */
struct shstk_rows {
	struct shstk_row *rows;
	size_t nr;
};

/**
 * shstk_rows_get() - get the number of a thing
 * @table: the table.
 * @pool: memory of the rows.
 * @key: what tells the thing from others.
 * @made: receives whether the thing was new; its number is then the last one.
 *
 * Return: the row, or NULL: memory ran out.
 */
struct shstk_row *shstk_rows_get(struct shstk_rows *table, struct shstk_pool *pool,
				 const uintptr_t key[SHSTK_ROW_KEY], bool *made);

/*
 * Does what shstk_rows_get() does. Returns the number of the thing. When memory runs out it is 0,
 * @made is false, and @failed is set.
 */
size_t shstk_rows_number(struct shstk_rows *table, struct shstk_pool *pool,
			 const uintptr_t key[SHSTK_ROW_KEY], bool *made, bool *failed);

/* Returns the row of a key, or NULL. */
struct shstk_row *shstk_rows_find(const struct shstk_rows *table,
				  const uintptr_t key[SHSTK_ROW_KEY]);

/* Releases the table; the rows stay in the pool. */
void shstk_rows_deinit(struct shstk_rows *table);

/**
 * struct shstk_column - a number for each thing of a table
 * @v: the numbers.
 * @nr: number of elements of @v.
 * @max: number of elements that @v has room for.
 */
struct shstk_column {
	int64_t *v;
	size_t nr;
	size_t max;
};

/* Adds a number to a column, whose @v the caller frees. Returns false when memory runs out. */
bool shstk_column_add(struct shstk_column *column, int64_t value);

/**
 * struct shstk_texts - texts that a format lists once and then refers to by number
 * @rows: numbers of the texts.
 * @v: the texts by number.
 * @max: number of elements that @v has room for.
 */
struct shstk_texts {
	struct shstk_rows rows;
	const char **v;
	size_t max;
};

/**
 * shstk_texts_get() - get the number of a text
 * @texts: the texts.
 * @pool: memory of the rows.
 * @text: the text, a string of the pool of texts.
 *
 * Return: the number; -1: memory ran out.
 */
int64_t shstk_texts_get(struct shstk_texts *texts, struct shstk_pool *pool, const char *text);

/* Forgets all texts, and keeps the room for others. */
void shstk_texts_reset(struct shstk_texts *texts);
void shstk_texts_deinit(struct shstk_texts *texts);

#endif /* SHSTK_FORMAT_ROWS_H */
