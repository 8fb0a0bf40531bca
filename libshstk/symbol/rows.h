/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* rows.h - numbers for things that a format lists once and then refers to by number. */
#ifndef SHSTK_ROWS_H
#define SHSTK_ROWS_H

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

/* Returns the row of a key, or NULL. */
struct shstk_row *shstk_rows_find(const struct shstk_rows *table,
				  const uintptr_t key[SHSTK_ROW_KEY]);

/* Releases the table; the rows stay in the pool. */
void shstk_rows_deinit(struct shstk_rows *table);

#endif /* SHSTK_ROWS_H */
