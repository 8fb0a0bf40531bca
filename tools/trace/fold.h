/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fold.h - stacks of deep recursions: what repeats is kept once.
 */
#ifndef TOOLS_TRACE_FOLD_H
#define TOOLS_TRACE_FOLD_H

#include "tools/trace/trace.h"

/**
 * fold_stack() - keep what repeats once, and of what is still too long both ends
 * @s: the stack; its entries become fewer, and @folds tells what they stand for.
 * @max: most entries that are kept.
 *
 * Return: 0 or -ENOMEM; then the stack cannot be used.
 */
int fold_stack(struct trace_stack *s, unsigned int max);

/* What entry @at of a stack begins; NULL: nothing but itself. */
const struct trace_fold *fold_at(const struct trace_stack *s, int at);

#endif
