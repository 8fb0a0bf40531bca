// SPDX-License-Identifier: LGPL-2.1-or-later
/* arena.c - memory that is reserved once and given out piece by piece; see arena.h. */
#include <errno.h>
#include <sys/mman.h>

#include "arena.h"

int arena_init(struct arena *a, size_t size)
{
	size = ALIGN_UP(size, 4096);
	a->base = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (a->base == MAP_FAILED) {
		a->base = NULL;
		return -ENOMEM;
	}
	a->size = size;
	a->used = 0;
	return 0;
}

void arena_deinit(struct arena *a)
{
	if (a->base)
		munmap(a->base, a->size);
	a->base = NULL;
}

void *arena_reserve(struct arena *a, size_t size)
{
	size_t old = load_relaxed(&a->used);

	size = ALIGN_UP(size, 8);
	do {
		if (size > a->size - old)
			return NULL;
	} while (!__atomic_compare_exchange_n(&a->used, &old, old + size, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return a->base + old;
}

void arena_trim(struct arena *a, void *reserved, size_t size, size_t keep)
{
	size_t start = (uint8_t *)reserved - a->base;
	size_t end = start + ALIGN_UP(size, 8);

	__atomic_compare_exchange_n(&a->used, &end, start + ALIGN_UP(keep, 8), false,
				    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
