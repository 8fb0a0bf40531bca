/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * heap_values.h - the values of a stack in a profile of allocations. They are the same whether the
 * heap agent in the process counts (heap.c) or probes at its allocator report (blocks.c).
 */
#ifndef TOOLS_RECORD_HEAP_HEAP_VALUES_H
#define TOOLS_RECORD_HEAP_HEAP_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "libshstk/symbol/profile.h"
#include "tools/record/heap/heap.h"

/* The values, in the order in which the profile has them. */
enum heap_value {
	ALLOC_OBJECTS,
	ALLOC_SPACE,
	INUSE_OBJECTS,
	INUSE_SPACE,
	PEAK_OBJECTS,
	PEAK_SPACE,
	TEMPORARY,
	LIFETIME,
	ALL_VALUES,
	GROWTH_OBJECTS = ALL_VALUES, /* from here on only in snapshots */
	GROWTH_SPACE,
	HEAP_VALUES,
};

/* Adds the value types to a profile of allocations. Returns 0 or a negative errno. */
int heap_add_types(struct shstk_profile *profile, const struct heap_opts *opts);

/*
 * Returns the number, counted from 1, of the value type with that name, such as "inuse_space"; 0 if
 * there is none.
 */
unsigned int heap_find_type(const char *name);

/* Returns the name of value type @type, counted from 1. */
const char *heap_type_name(unsigned int type);

/* Returns whether value type @type, counted from 1, exists in snapshots only. */
bool heap_type_is_growth(unsigned int type);

/* Returns the names of all value types, separated by blanks. */
const char *heap_type_names(void);

/* Returns whether the value counts objects, not bytes or time. */
bool heap_type_counts(enum heap_value value);

/*
 * Returns how many of the @nr entries, from the innermost on, are in operator new. The function
 * that calls operator new is the one that allocates.
 */
unsigned int heap_skip_new(struct shstk_symproc *proc, const uint64_t *pcs, unsigned int nr);

#endif
