/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * heap_functions.h - functions of Python programs in the stacks of allocations.
 *
 * The heap agent reads them in the process (tools/inject/heap/python.c). Here they are put among the
 * native entries, as those of samples are (tools/language/).
 */
#ifndef TOOLS_RECORD_HEAP_HEAP_FUNCTIONS_H
#define TOOLS_RECORD_HEAP_HEAP_FUNCTIONS_H

#include <stdint.h>

#include "libshstk/symbol/symbol.h"
#include "tools/inject/heap/region.h"
#include "tools/language/languages.h"

struct heap_functions;

/*
 * @depth: most entries of a native stack. @fold: with functions, too, a stack has no more, so that both
 * ends of a recursion remain. Returns NULL without memory.
 */
struct heap_functions *heap_functions_create(uint32_t depth, bool fold);
void heap_functions_destroy(struct heap_functions *f);

/* Has @symbols name the functions. */
void heap_functions_name(struct heap_functions *f, struct shstk_symbols *symbols);

/*
 * Takes which Python a process has. Returns its number for what follows; 0: it is none that is known,
 * or there are too many.
 */
int heap_functions_interpreter(struct heap_functions *f, const struct heap_interpreter *it);

/*
 * Takes a function. @record is a copy, in which this function changes the number. @size: its bytes.
 * @region: number of the region. Returns 0 or -ENOMEM.
 */
int heap_functions_take(struct heap_functions *f, int interpreter, uint32_t region,
			struct heap_code *record, size_t size);

/**
 * struct heap_stack - the entries of a stack
 * @pcs: the entries, innermost first.
 * @marks: SHSTK_MARK_* of each.
 * @nr: number of entries.
 * @folded: entries stand for others, which were left out when functions came in.
 */
struct heap_stack {
	const uint64_t *pcs;
	const uint8_t *marks;
	unsigned int nr;
	bool folded;
};

/*
 * Finds the entries of a stack, with the functions of Python in it if they can be placed for sure. @t
 * is a copy of a trace record whose size was checked; it is changed. What @ret points to stays until
 * the next call, or as long as @t.
 */
void heap_functions_place(struct heap_functions *f, int interpreter, uint32_t region,
			  struct heap_trace *t, struct heap_stack *ret);

/* Counts the stacks of which functions were read. @f may be NULL. */
void heap_functions_count(const struct heap_functions *f, struct language_counts *ret);

/* Returns why functions are not shown, or NULL. */
const char *heap_functions_refused(const struct heap_functions *f);

#endif
