/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* pool.h - memory that is released all at once, and strings held once. */
#ifndef SHSTK_SYMBOL_POOL_H
#define SHSTK_SYMBOL_POOL_H

#include <stdbool.h>
#include <stddef.h>

/* Longest string that is kept, in bytes. Longer strings are cut and end in "...". */
#define SHSTK_TEXT_MAX 16384

struct shstk_pool_chunk;
struct shstk_pool_text;

/**
 * struct shstk_pool - memory that is released all at once
 * @chunks: all chunks, the newest first.
 * @next: next free byte of the newest chunk.
 * @left: number of free bytes in the newest chunk.
 * @texts: all strings, by their bytes as they were given.
 */
struct shstk_pool {
	struct shstk_pool_chunk *chunks;
	char *next;
	size_t left;
	struct shstk_pool_text *texts;
};

void shstk_pool_init(struct shstk_pool *pool);
void shstk_pool_deinit(struct shstk_pool *pool);
/* Returns zeroed memory, aligned for any type; NULL when memory runs out. */
void *shstk_pool_alloc(struct shstk_pool *pool, size_t size);
/*
 * Returns the one copy of a string, made valid UTF-8 without control characters: two equal strings
 * are the same pointer. NULL when memory runs out.
 */
const char *shstk_pool_text(struct shstk_pool *pool, const char *text, size_t len);

/* Returns whether shstk_pool_text() has the string already and would take no memory for it. */
bool shstk_pool_has(struct shstk_pool *pool, const char *text, size_t len);

/*
 * Makes room for one more element in a malloc'd array that has @nr elements and room for @*max.
 * Returns the array, perhaps moved, or NULL when memory runs out.
 */
void *shstk_grow(void *array, size_t nr, size_t *max, size_t size);

#endif
