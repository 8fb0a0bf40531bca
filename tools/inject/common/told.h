/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * told.h - numbers about which the recorder was told, in a table of a fixed size, without a lock.
 *
 * A number has two places, so that two that are used by turns and fall on the same ones stay both. A third
 * one makes the table forget the older; then the recorder is told again, which costs time only.
 */
#ifndef INJECT_TOLD_H
#define INJECT_TOLD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Returns the first of the two places of @id, whose lowest two bits tell nothing. @size is even. */
static inline _Atomic uint64_t *told_places(_Atomic uint64_t *table, uint32_t size, uint64_t id)
{
	return &table[id / 4 % (size / 2) * 2];
}

static inline bool told_has(_Atomic uint64_t *table, uint32_t size, uint64_t id)
{
	_Atomic uint64_t *at = told_places(table, size, id);

	return atomic_load_explicit(&at[0], memory_order_acquire) == id ||
	       atomic_load_explicit(&at[1], memory_order_acquire) == id;
}

/* Adds a number that the recorder has been told of. */
static inline void told_add(_Atomic uint64_t *table, uint32_t size, uint64_t id)
{
	_Atomic uint64_t *at = told_places(table, size, id);

	atomic_store_explicit(&at[1], atomic_load_explicit(&at[0], memory_order_relaxed),
			      memory_order_release);
	atomic_store_explicit(&at[0], id, memory_order_release);
}

#endif
