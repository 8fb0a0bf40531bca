/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack_outer.h - finds the part of a stack behind a copy that ended too soon: from what the same
 * thread had there before, or from the kernel's callchain.
 */
#ifndef TOOLS_CONVERT_STACK_OUTER_H
#define TOOLS_CONVERT_STACK_OUTER_H

#include "tools/convert/callchain.h"
#include "tools/convert/mappings.h"

/**
 * struct whole_stack - a thread's last stack that was seen to its end; all 0 if there was none
 * @pcs: its entries, innermost first.
 * @sps: the stack pointer of each entry.
 * @nr: number of entries.
 * @max: number of entries for which there is room.
 */
struct whole_stack {
	uint64_t *pcs;
	uint64_t *sps;
	unsigned int nr;
	unsigned int max;
};

void outer_deinit(struct whole_stack *b);

/**
 * enum outer_source - where the outer part of a stack is from
 * @OUTER_NOTHING: there is no part that is not from the copy.
 * @OUTER_BEFORE: from the thread's last stack that was seen to its end.
 * @OUTER_CALLCHAIN: from the kernel's callchain, as far as that goes.
 * @OUTER_READ: read from the process before and after the sample, with the same result
 *   (stack_read_twice.h).
 */
enum outer_source {
	OUTER_NOTHING,
	OUTER_BEFORE,
	OUTER_CALLCHAIN,
	OUTER_READ,
};

/* Bytes of a label of outer_label(), at most. */
#define OUTER_LABEL 24

/**
 * outer_label() - make the label of a sample whose stack has an outer part that is not from its
 * copy
 * @by: where the outer part is from.
 * @buf: receives "outer" and a word for @by, each followed by a 0; OUTER_LABEL bytes.
 *
 * Return: bytes in @buf; 0 if no label is needed.
 */
size_t outer_label(enum outer_source by, char *buf);

/* Returns what is said of stacks with such an outer part, to be printed behind their number. */
const char *outer_words(enum outer_source by);

/**
 * outer_continue() - continue a stack that goes on behind its copy, or remember a stack
 * @b: the remembered stack of this thread, in this program.
 * @mappings: what the program has mapped.
 * @stack: the stack, with @sps.
 * @copy: the copy from which it was unwound.
 * @chain: the kernel's callchain of the same sample.
 *
 * The last entry of such a stack is known, but not its caller. If the remembered stack has the same
 * entry at the same place of the stack, what follows that entry is taken from there. These entries
 * have SHSTK_MARK_GUESS, since that caller may have returned and another one may have called
 * meanwhile. But if the callchain has other entries there, they are taken instead, with the same
 * mark; functions without frame records are missing among them.
 *
 * Stacks that fit into half of a copy are not remembered.
 *
 * Return: where the outer part of the stack is from.
 */
enum outer_source outer_continue(struct whole_stack *b, struct mappings *mappings,
				 struct unwound *stack, const struct stack_copy *copy,
				 const struct callchain *chain);

#endif
