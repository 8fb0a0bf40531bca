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
 * See repeats_shorten(). If there are still too many entries of a stack that was not seen to its
 * end, @ret stays as it is.
 *
 * Return: whether entries were left out.
 */
bool deep_fold(struct unwound *deep, struct unwound *ret);

#endif
