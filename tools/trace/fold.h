/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fold.h - shorten the stacks of deep recursions: what repeats is kept once. */
#ifndef TOOLS_TRACE_FOLD_H
#define TOOLS_TRACE_FOLD_H

#include "tools/trace/trace.h"

/**
 * fold_stack() - keep repeated entries once, and both ends of a stack that is still too long
 * @s: the stack. Its entries become fewer, and its @folds tell what they stand for.
 * @max: maximum number of entries to keep.
 *
 * Return: 0, or -ENOMEM: the stack cannot be used then.
 */
int fold_stack(struct trace_stack *s, unsigned int max);

/* Returns the fold that begins at entry @at of a stack, or NULL. */
const struct trace_fold *fold_at(const struct trace_stack *s, int at);

#endif
