/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plugin.c - a library that is unloaded while a marker for its code was on the stack.
 */

int plugin_call(int (*fn)(void *arg), void *arg);

static __attribute__((noinline)) int inner(int (*fn)(void *arg), void *arg)
{
	volatile int pad[20];

	pad[0] = fn(arg);
	return pad[0] + 1;
}

int plugin_call(int (*fn)(void *arg), void *arg)
{
	return inner(fn, arg) + 1;
}
