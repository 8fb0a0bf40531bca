/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * allocations.h - the profile of allocations, and the lines about it, whoever counts them.
 */
#ifndef TOOLS_RECORD_HEAP_ALLOCATIONS_H
#define TOOLS_RECORD_HEAP_ALLOCATIONS_H

#include "tools/record/backend.h"
#include "tools/record/heap/heap.h"

/* What is to be recorded. */
struct heap_opts allocations_options(const struct record_opts *o);

/* Makes the profile. Returns 0 or a negative errno. */
int allocations_begin(struct recording *r);

/* How far it is: "12 MB in use, peak 14 MB, 1 process, 1.2 s". */
void allocations_describe(const struct recording *r, const struct heap_counts *c, char *buf,
			  size_t size);

/* The last lines, when all is written. @ended: of a command that has ended. */
void allocations_report(const struct recording *r, const struct heap_counts *c, bool ended);

#endif
