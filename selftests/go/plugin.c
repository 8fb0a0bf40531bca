// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * plugin.c - a library that traceback_c_test loads while it runs.
 */
__attribute__((noinline)) int plugin_call(void (*fn)(void))
{
	volatile int got = 1;

	fn();
	return got + 1;
}
