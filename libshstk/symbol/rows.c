// SPDX-License-Identifier: LGPL-2.1-or-later
/* rows.c - numbers for things, as rows.h describes. */
#include "rows.h"

struct shstk_row *shstk_rows_find(const struct shstk_rows *table,
				  const uintptr_t key[SHSTK_ROW_KEY])
{
	struct shstk_row *row;

	HASH_FIND(hh, table->rows, key, sizeof(row->key), row);
	return row;
}

struct shstk_row *shstk_rows_get(struct shstk_rows *table, struct shstk_pool *pool,
				 const uintptr_t key[SHSTK_ROW_KEY], bool *made)
{
	struct shstk_row *row = shstk_rows_find(table, key);

	*made = !row;
	if (row)
		return row;
	row = shstk_pool_alloc(pool, sizeof(*row));
	if (!row)
		return NULL;
	memcpy(row->key, key, sizeof(row->key));
	row->id = table->nr++;
	HASH_ADD(hh, table->rows, key, sizeof(row->key), row);
	return row->hh.tbl ? row : NULL;
}

void shstk_rows_deinit(struct shstk_rows *table)
{
	HASH_CLEAR(hh, table->rows);
}
