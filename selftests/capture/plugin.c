// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * plugin.c - a library to be opened and closed; FRAME is the size of its frame,
 * so that two builds differ in their rules and in nothing else.
 */
#include "truth.h"

int plugin_call(struct truth *t, int (*fn)(void *), void *arg);

noinline int plugin_call(struct truth *t, int (*fn)(void *), void *arg)
{
	volatile char pad[FRAME];
	int ret;

	t->ra[t->n++] = truth_strip(__builtin_return_address(0));
	pad[0] = 1;
	ret = fn(arg) + pad[0] - 1;
	NO_TAIL_CALL();
	t->n--;
	return ret;
}
