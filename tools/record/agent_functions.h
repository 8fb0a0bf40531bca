/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * agent_functions.h - functions of Python programs in the stacks that agents took.
 *
 * The agents read them in the process (tools/inject/common/python.c). Here they are put among the native
 * entries, as those that a BPF program reads are (tools/language/).
 */
#ifndef TOOLS_RECORD_AGENT_FUNCTIONS_H
#define TOOLS_RECORD_AGENT_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/language.h"
#include "libshstk/symbol/symbol.h"
#include "tools/language/languages.h"

struct agent_functions;

#define AGENT_FUNCTIONS_OWNERS (1u << 18) /* numbers of owners are smaller */

/*
 * @depth: most entries of a native stack. @fold: with functions, too, a stack has no more, so that both
 * ends of a recursion remain. Returns NULL without memory.
 */
struct agent_functions *agent_functions_create(uint32_t depth, bool fold);
void agent_functions_destroy(struct agent_functions *f);

/* Has @symbols name the functions. */
void agent_functions_name(struct agent_functions *f, struct shstk_symbols *symbols);

/**
 * struct agent_python - the Python that a process has
 * @minor: 11 for Python 3.11.
 * @run: address of the function that runs frames.
 * @run_size: bytes of this function.
 * @beginning: its first PYTHON_BEGINNING bytes; NULL: frames are read only where its lists are whole.
 */
struct agent_python {
	uint32_t minor;
	uint64_t run;
	uint64_t run_size;
	const uint8_t *beginning;
};

/*
 * Takes which Python a process has. Returns its number for what follows; 0: it is none that is known,
 * or there are too many.
 */
int agent_functions_python(struct agent_functions *f, const struct agent_python *it);

/*
 * Takes a function. @code is a copy, in which this function changes the number. @size: its bytes. @owner:
 * number of whose function it is. Returns 0 or -ENOMEM.
 */
int agent_functions_take(struct agent_functions *f, int python, uint32_t owner,
			 struct language_code *code, size_t size);

/**
 * struct agent_stack - the entries of a stack
 * @pcs: the entries, innermost first.
 * @marks: SHSTK_MARK_* of each.
 * @nr: number of entries.
 * @folded: entries stand for others, which were left out when functions came in.
 */
struct agent_stack {
	const uint64_t *pcs;
	const uint8_t *marks;
	unsigned int nr;
	bool folded;
};

/**
 * struct agent_frames - what an agent read of a thread
 * @python: number of the Python that the process has; 0: it is not known.
 * @owner: whose functions these are.
 * @bytes: a copy of the stack pointer of each entry, and of a struct language_moment with its entries,
 *	which is changed.
 * @size: bytes of these, a multiple of 8.
 * @complete: the native stack was seen to its end.
 */
struct agent_frames {
	int python;
	uint32_t owner;
	void *bytes;
	size_t size;
	bool complete;
};

/* Returns whether all functions of what an agent read are known. */
bool agent_functions_known(const struct agent_functions *f, const struct agent_frames *frames,
			   unsigned int nr);

/*
 * Finds the entries of a stack, with the functions of Python in it if they can be placed for sure. @stack has
 * the native ones. What it points to stays until the next call.
 */
void agent_functions_place(struct agent_functions *f, const struct agent_frames *frames,
			   struct agent_stack *stack);

/* Counts the stacks of which functions were read. @f may be NULL. */
void agent_functions_count(const struct agent_functions *f, struct language_counts *ret);

/* Returns why functions are not shown, or NULL. */
const char *agent_functions_refused(const struct agent_functions *f);

#endif
