// SPDX-License-Identifier: LGPL-2.1-or-later
/* format_rows.c - numbers for things, as format_rows.h describes. */
#include <stdlib.h>

#include "format_rows.h"

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

size_t shstk_rows_number(struct shstk_rows *table, struct shstk_pool *pool,
			 const uintptr_t key[SHSTK_ROW_KEY], bool *made, bool *failed)
{
	const struct shstk_row *row = shstk_rows_get(table, pool, key, made);

	if (row)
		return row->id;
	*failed = true;
	*made = false;
	return 0;
}

void shstk_rows_deinit(struct shstk_rows *table)
{
	HASH_CLEAR(hh, table->rows);
}

bool shstk_column_add(struct shstk_column *column, int64_t value)
{
	int64_t *v = shstk_grow(column->v, column->nr, &column->max, sizeof(*v));

	if (!v)
		return false;
	column->v = v;
	column->v[column->nr++] = value;
	return true;
}

int64_t shstk_texts_get(struct shstk_texts *texts, struct shstk_pool *pool, const char *text)
{
	const uintptr_t key[SHSTK_ROW_KEY] = { (uintptr_t)text };
	const char **v = shstk_grow(texts->v, texts->rows.nr, &texts->max, sizeof(*v));
	const struct shstk_row *row;
	bool made;

	if (!v)
		return -1;
	texts->v = v;
	/* The text of the next number, if it gets that. So no number is without a text. */
	texts->v[texts->rows.nr] = text;
	row = shstk_rows_get(&texts->rows, pool, key, &made);
	return row ? (int64_t)row->id : -1;
}

void shstk_texts_reset(struct shstk_texts *texts)
{
	shstk_rows_deinit(&texts->rows);
	texts->rows = (struct shstk_rows){ 0 };
}

void shstk_texts_deinit(struct shstk_texts *texts)
{
	shstk_rows_deinit(&texts->rows);
	free(texts->v);
}
