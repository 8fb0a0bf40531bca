// SPDX-License-Identifier: LGPL-2.1-or-later
/* builder.c - see builder.h. */
#include <stdio.h>

#include "builder.h"

void *shstk_builder_alloc(struct shstk_builder *builder, size_t size)
{
	void *ret = shstk_pool_alloc(&builder->pool, size);

	if (!ret)
		builder->failed = true;
	return ret;
}

void *shstk_builder_array(struct shstk_builder *builder, size_t nr, size_t size)
{
	if (nr > SIZE_MAX / 2 / size) {
		builder->failed = true;
		return NULL;
	}
	return shstk_builder_alloc(builder, nr * size);
}

bool shstk_builder_push(struct shstk_builder *builder, struct shstk_message_items *items,
			void *item)
{
	void **v = shstk_grow(items->v, items->nr, &items->max, sizeof(*v));

	if (v)
		items->v = v;
	if (!v || !item) {
		builder->failed = true;
		return false;
	}
	items->v[items->nr++] = item;
	return true;
}

char *shstk_builder_hex(struct shstk_builder *builder, const uint8_t *bytes, size_t size)
{
	char *hex = shstk_builder_alloc(builder, 2 * size + 1);

	for (size_t i = 0; hex && i < size; i++)
		snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
	return hex;
}

char *shstk_builder_build_id(struct shstk_builder *builder, const struct shstk_symmap *map)
{
	return shstk_builder_hex(builder, map->build_id, map->build_id_size);
}
