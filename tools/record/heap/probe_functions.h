/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * probe_functions.h - the functions of programs in an interpreter that allocate, for `shstk record
 * --heap -p`. A BPF program reads them at the probes (bpf/probed.bpf.c).
 */
#ifndef TOOLS_RECORD_HEAP_PROBE_FUNCTIONS_H
#define TOOLS_RECORD_HEAP_PROBE_FUNCTIONS_H

#include "tools/convert/mappings.h"
#include "tools/convert/population.h"
#include "tools/language/languages.h"
#include "tools/probes/probe_programs.h"
#include "tools/record/heap/heap.h"

struct probe_functions;

/**
 * probe_functions_create() - prepare for interpreters
 * @programs: the programs at the probes, which must outlive this.
 *
 * Return: what the calls below take; NULL, which they take, too, if there is no memory.
 */
struct probe_functions *probe_functions_create(const struct programs *programs);
void probe_functions_destroy(struct probe_functions *f);

/*
 * Looks whether a process may have an interpreter. The program that reads frames is loaded for the first one
 * that may. If functions cannot be read, allocations are recorded nevertheless, and probe_functions_count()
 * has the reason.
 */
void probe_functions_look(struct probe_functions *f, pid_t pid);

/* Has the functions of a process be read from now on, if it has an interpreter that is known. */
void probe_functions_meet(struct probe_functions *f, struct process *p);

/* Has functions named by these symbols. */
void probe_functions_name(struct probe_functions *f, struct shstk_symbols *symbols);

/* Takes a record of the ring that is none of the probes' own. Returns 0 or -ENOMEM. */
int probe_functions_take(struct probe_functions *f, const void *record, size_t size);

/**
 * probe_functions_place() - put functions into the stack of a call
 * @f: what probe_functions_create() returned.
 * @p: the process.
 * @call: the call.
 * @regs: its registers.
 * @stack: the stack as it was unwound, with stack pointers.
 * @ret: receives the new stack, at most as many entries as it has room for.
 * @fold: a deeper stack is shortened to that room.
 *
 * Return: true; false if there are none, or they have no sure place. Then @ret stays as it is.
 */
bool probe_functions_place(struct probe_functions *f, struct process *p,
			   const struct probe_call *call, const struct shstk_regs *regs,
			   const struct unwound *stack, struct unwound *ret, bool fold);

/* Returns whether the stack that was made last was shortened. */
bool probe_functions_folded(const struct probe_functions *f);

/* Fills in the counts of functions. */
void probe_functions_count(const struct probe_functions *f, struct heap_counts *ret);

#endif
