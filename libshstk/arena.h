/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * arena.h - address space that is reserved once and given out piece by piece, without
 * locks: also in signal handlers.
 */
#ifndef SHSTK_ARENA_H
#define SHSTK_ARENA_H

#include "internal.h"

/**
 * struct arena - memory that is zero until it is written
 * @base: its beginning.
 * @size: bytes reserved.
 * @used: bytes given out, from the beginning.
 */
struct arena {
	uint8_t *base;
	size_t size;
	size_t used;
};

/* 0, or -ENOMEM. */
int arena_init(struct arena *a, size_t size);
void arena_deinit(struct arena *a);

/* @size bytes, or NULL. */
void *arena_reserve(struct arena *a, size_t size);

/* Keep only the first @keep bytes of @reserved, if nothing has been reserved behind it. */
void arena_trim(struct arena *a, void *reserved, size_t size, size_t keep);

#endif
