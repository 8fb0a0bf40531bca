/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * allocations.h - the profile of allocations and the lines about it. The back ends of the heap
 * agent and of BPF probes share them.
 */
#ifndef TOOLS_RECORD_HEAP_ALLOCATIONS_H
#define TOOLS_RECORD_HEAP_ALLOCATIONS_H

#include "tools/record/backend.h"
#include "tools/record/heap/heap.h"

/* Returns what is to be recorded according to the options. */
struct heap_opts allocations_options(const struct record_opts *o);

/* Makes the recording's profile and symbols. Returns 0 or a negative errno. */
int allocations_begin(struct recording *r);

/* Writes the counts so far to @buf: "12 MB in use, peak 14 MB, 1 process, 1.2 s". */
void allocations_describe(const struct recording *r, const struct heap_counts *c, char *buf,
			  size_t size);

/* Reports how many stacks have the functions that an interpreter ran. */
void allocations_report_functions(struct recording *r, const struct heap_counts *c);

/* Prints the last lines, after everything is written. @ended: the recorded command has ended. */
void allocations_report(const struct recording *r, const struct heap_counts *c, bool ended);

#endif
