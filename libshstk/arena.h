/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * arena.h - memory that is reserved once and given out piece by piece, without locks, so that
 * signal handlers can use it too. Pieces are not freed one by one.
 */
#ifndef SHSTK_ARENA_H
#define SHSTK_ARENA_H

#include "internal.h"

/**
 * struct arena - memory that is zero until it is written
 * @base: first byte of the memory.
 * @size: number of bytes reserved.
 * @used: number of bytes given out, counted from @base.
 */
struct arena {
	uint8_t *base;
	size_t size;
	size_t used;
};

/* Reserves @size bytes of address space. Returns 0 or -ENOMEM. */
int arena_init(struct arena *a, size_t size);
void arena_deinit(struct arena *a);

/* Gives out @size bytes, aligned to 8. Returns NULL if there is no room left. */
void *arena_reserve(struct arena *a, size_t size);

/*
 * Gives back all but the first @keep bytes of @reserved, which arena_reserve() returned for @size
 * bytes. Does nothing if other memory was given out behind it meanwhile.
 */
void arena_trim(struct arena *a, void *reserved, size_t size, size_t keep);

#endif
