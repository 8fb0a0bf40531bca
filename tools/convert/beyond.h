/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * beyond.h - the part of a stack behind a copy that ended too soon: from what the same
 * thread had there before, or from the kernel's callchain.
 */
#ifndef TOOLS_CONVERT_BEYOND_H
#define TOOLS_CONVERT_BEYOND_H

#include "tools/convert/callchain.h"
#include "tools/convert/layout.h"

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
 * enum beyond_by - where the outer part of a stack is from
 * @BEYOND_NOTHING: it has none but its own.
 * @BEYOND_BEFORE: from the thread's last stack that was seen to its end.
 * @BEYOND_CALLCHAIN: from the kernel's callchain, as far as that goes.
 * @BEYOND_READ: read from the process before and after the sample, the same (above.h).
 */
enum beyond_by {
	BEYOND_NOTHING,
	BEYOND_BEFORE,
	BEYOND_CALLCHAIN,
	BEYOND_READ,
};

/* Room for the label of beyond_label(). */
#define BEYOND_LABEL 24

/**
 * beyond_label() - the label of a sample with such an outer part, so that it can be told apart
 * @by: where that is from.
 * @buf: receives "outer" and where from, each with a zero behind it; BEYOND_LABEL bytes.
 *
 * Return: bytes in @buf; 0: it needs no label.
 */
size_t beyond_label(enum beyond_by by, char *buf);

/* What is said of these stacks, behind their number. */
const char *beyond_words(enum beyond_by by);

/**
 * beyond_continue() - continue a stack that goes on behind its copy, or remember one
 * @b: of this thread, in this program.
 * @layout: what the program has mapped.
 * @stack: the stack, whose @sps must be there.
 * @copy: what it was unwound from.
 * @chain: the kernel's callchain of the same sample.
 *
 * The last entry is known, but not its caller. If there was the same entry at the same
 * place of the stack when it was seen to its end last, what was behind it is taken from
 * there: entries with SHSTK_MARK_GUESS, as that caller may have returned and another
 * one have called meanwhile. But if the callchain has other entries there, these are taken,
 * with the same mark: functions without frame records are missing among them.
 *
 * Stacks that fit into half of a copy are not remembered.
 */
enum beyond_by beyond_continue(struct beyond *b, struct layout *layout, struct unwound *stack,
			       const struct stack_copy *copy, const struct callchain *chain);

#endif
