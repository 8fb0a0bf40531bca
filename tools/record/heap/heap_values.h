/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * heap_values.h - the values that a stack has in a profile of allocations, whoever counts
 * them: the agent in the process (heap.c), or probes at its allocator (blocks.c).
 */
#ifndef TOOLS_RECORD_HEAP_HEAP_VALUES_H
#define TOOLS_RECORD_HEAP_HEAP_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "libshstk/symbol/profile.h"
#include "tools/record/heap/heap.h"

/* In the order of the profile's values. */
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
	GROWTH_OBJECTS = ALL_VALUES, /* these only of snapshots */
	GROWTH_SPACE,
	HEAP_VALUES,
};

/* Declares the value types of such a profile. Returns 0 or a negative errno. */
int heap_add_types(struct shstk_profile *profile, const struct heap_opts *opts);

/*
 * Number of a value type by its name ("inuse_space"), counted from 1; 0: there
 * is none of that name.
 */
unsigned int heap_find_type(const char *name);

/* The name of one. */
const char *heap_type_name(unsigned int type);

/* Is it a value of snapshots only? */
bool heap_type_is_growth(unsigned int type);

/* The names of all value types, with blanks between. */
const char *heap_type_names(void);

/* Does it count objects, not bytes or time? */
bool heap_type_counts(enum heap_value value);

/*
 * How many of the innermost entries, of which there are @nr, are of operator new: who called
 * that is who allocates.
 */
unsigned int heap_skip_new(struct shstk_symproc *proc, const uint64_t *pcs, unsigned int nr);

#endif
