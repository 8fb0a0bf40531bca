/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack_deep.h - shortens stacks that have more entries than a profile keeps, so that both ends
 * remain and the stacks of a recursion are equal, however deep it is.
 *
 *	innermost first: inner, pong, ping, pong, ping, ... pong, ping, main
 *	becomes:         inner, pong, ping, [recursion of 2 calls], main
 */
#ifndef TOOLS_CONVERT_STACK_DEEP_H
#define TOOLS_CONVERT_STACK_DEEP_H

#include <stdbool.h>

#include "tools/convert/mappings.h"

/* Makes room for a deep stack, with @sps. Returns false without memory. */
bool deep_init(struct unwound *deep);
void deep_deinit(struct unwound *deep);

/**
 * deep_fold() - shorten a deep stack
 * @deep: the stack. Its entries are no longer valid after this.
 * @ret: receives what @deep becomes, without @sps, which stays as it is: at most as many entries as
 *	it has room for.
 *
 * What repeats is kept once. Behind it, further out, is an entry that stands for all the others
 * (SHSTK_FUNCTION_LEFT_OUT). If that leaves too many entries of a stack that was seen to its end,
 * an entry stands for those in its middle.
 *
 * If there are still too many of a stack that was not seen to its end, @ret stays as it is.
 *
 * Return: whether entries were left out.
 */
bool deep_fold(struct unwound *deep, struct unwound *ret);

#endif
