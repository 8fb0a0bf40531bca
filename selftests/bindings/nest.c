// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * nest.c - a shared object with a stack that is known: a function that calls itself, captures, and
 * then calls back from the same frame.
 */
#include "shstk.h"

struct nest {
	int n;
	struct shstk_info info;
	uint64_t pcs[256];
	void (*back)(void);
};

/* Calls itself @depth times. The innermost call captures by C and then calls back. */
__attribute__((visibility("default"), noinline)) int nest(struct nest *call, int depth)
{
	int left;

	if (!depth) {
		call->info.size = sizeof(call->info);
		call->n = shstk_capture(call->pcs, 256, NULL, &call->info);
		call->back();
		return call->n;
	}
	left = nest(call, depth - 1);
	__asm__ volatile("" ::: "memory"); /* it is a call, not a jump */
	return left;
}
