/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * beyond.h - the part of a stack behind a copy that ended too soon, from what the same
 * thread had there before.
 */
#ifndef TOOLS_UNWIND_BEYOND_H
#define TOOLS_UNWIND_BEYOND_H

#include "tools/unwind/layout.h"

/**
 * struct beyond - a thread's last stack that was seen to its end; zero: none so far
 * @pcs: its entries, innermost first.
 * @sps: the stack pointer of each.
 * @nr: their number.
 * @max: room for them.
 */
struct beyond {
	uint64_t *pcs;
	uint64_t *sps;
	unsigned int nr;
	unsigned int max;
};

void beyond_deinit(struct beyond *b);

/**
 * beyond_continue() - complete a stack that goes on behind its copy, or remember one
 * @b: of this thread, in this program.
 * @stack: the stack, whose @sps must be there.
 * @size: bytes of a copy. Stacks that fit into half of it are not remembered.
 *
 * The last entry is known, but not its caller. If there was the same entry at the same
 * place of the stack when it was seen to its end last, what was behind it is taken from
 * there: entries with SHSTK_MARK_GUESS, as that caller may have returned and another
 * one have called meanwhile.
 *
 * Return: whether @stack was completed.
 */
bool beyond_continue(struct beyond *b, struct unwound *stack, size_t size);

#endif
