/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * source.h - all ways to capture a stack that are measured here: libshstk's own, and the unwinders
 * that others use. They all have one prototype.
 */
#ifndef BENCH_SOURCE_H
#define BENCH_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The chains on which a source is measured. */
#define ON_FP 0x1 /* code with frame pointers */
#define ON_NOFP 0x2 /* code without frame pointers */
#define ON_ALL (ON_FP | ON_NOFP)
#define ONLY_FIXED 0x4 /* not for scenarios in which the place of captures changes */

/**
 * struct source - a way to capture
 * @name: name, as in bench.csv.
 * @chains: mask of ON_* and ONLY_*.
 * @tracer: the source returns a trace; "none", "shstk-reader", "floor-loads" and "memcpy" do not.
 * @ours: the source is part of libshstk.
 * @capture: stores up to @max addresses and returns their number. It is only called from the
 *	bench's own thread.
 * @load: prepares the source. Returns NULL, or why it cannot run here. May be NULL.
 * @missing: what @load returned.
 */
struct source {
	const char *name;
	unsigned int chains;
	bool tracer;
	bool ours;
	int (*capture)(uint64_t *pcs, int max);
	const char *(*load)(void);
	const char *missing;
};

#define MAX_SOURCES 32

/* All sources. The last has no name; @nr_sources does not count it. */
extern struct source sources[MAX_SOURCES];
extern unsigned int nr_sources;

/* Counts the sources, and adds those of versus.c if they are loaded. */
void source_list(void);

struct source *source_find(const char *name);

/* Loads what the source needs at run time. Sets @missing and returns it. */
const char *source_load(struct source *source);

/* Tells fp-loop where the stack lies. */
void fp_loop_bounds(uintptr_t lowest, uintptr_t highest);

/* The number of entries that "memcpy" and "shstk-reader" copy. */
extern int memcpy_entries;

/* A number that changes when the place of captures changes. */
extern unsigned int source_place;

/* Defined in abseil.cc. */
int abseil_capture(uint64_t *pcs, int max);

/* Defined in floor.c. */
int floor_capture(uint64_t *pcs, int max);
const char *floor_load(void);

#endif
