/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * rows.h - numbers for things that a format lists once and then names by their number.
 */
#ifndef SHSTK_ROWS_H
#define SHSTK_ROWS_H

#include "private.h"

#define SHSTK_ROW_KEY 4

/**
 * struct shstk_row - a thing that has its number
 * @hh: in the table.
 * @key: what tells it from others: pointers of the pool of texts, and numbers.
 * @id: its number.
 */
struct shstk_row {
	UT_hash_handle hh;
	uintptr_t key[SHSTK_ROW_KEY];
	size_t id;
};

/**
 * struct shstk_rows - a table of them
 * @rows: by key.
 * @nr: how many there are.
 */
struct shstk_rows {
	struct shstk_row *rows;
	size_t nr;
};

/**
 * shstk_rows_get() - the number of a thing
 * @table: the table.
 * @pool: memory of its rows.
 * @key: what tells it from others.
 * @made: receives whether it has its number only now, which is the last one.
 *
 * Return: the row, or NULL: memory ran out.
 */
struct shstk_row *shstk_rows_get(struct shstk_rows *table, struct shstk_pool *pool,
				 const uintptr_t key[SHSTK_ROW_KEY], bool *made);

/* The row of a key, or NULL. */
struct shstk_row *shstk_rows_find(const struct shstk_rows *table,
				  const uintptr_t key[SHSTK_ROW_KEY]);

/* Gives back what is not of the pool. */
void shstk_rows_deinit(struct shstk_rows *table);

#endif /* SHSTK_ROWS_H */
