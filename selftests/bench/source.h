/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * source.h - everything that can capture a stack here: libshstk's own ways and
 * the unwinders that others use, all behind one prototype.
 */
#ifndef BENCH_SOURCE_H
#define BENCH_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which chains a source is measured on. */
#define ON_FP 0x1 /* code with frame pointers */
#define ON_NOFP 0x2 /* code without */
#define ON_ALL (ON_FP | ON_NOFP)
#define ONLY_FIXED 0x4 /* no use where the place of captures changes */

/**
 * struct source - a way to capture
 * @name: as in bench.csv.
 * @chains: ON_* and ONLY_*.
 * @tracer: it returns a trace (not so: "none", "shstk-reader", "floor-loads",
 *	"memcpy").
 * @ours: it is part of libshstk.
 * @capture: fills up to @max addresses, returns how many. Only ever called
 *	from the bench's own thread.
 * @load: gets it ready, returns why it cannot run here; or NULL.
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

/* Ends with one without a name; @nr_sources before that. */
extern struct source sources[MAX_SOURCES];
extern unsigned int nr_sources;

/* Count them. */
void source_list(void);

struct source *source_find(const char *name);

/* Load what the source needs at run time; returns and sets @missing. */
const char *source_load(struct source *source);

/* Tell fp-loop where the stack lies. */
void fp_loop_bounds(uintptr_t lowest, uintptr_t highest);

/* The number of entries that "memcpy" copies. */
extern int memcpy_entries;

/* A number that changes with the place where captures happen. */
extern unsigned int source_place;

/* In abseil.cc. */
int abseil_capture(uint64_t *pcs, int max);

/* In floor.c. */
int floor_capture(uint64_t *pcs, int max);
const char *floor_load(void);

#endif
