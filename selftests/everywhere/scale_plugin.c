// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * scale_plugin.c - one of a thousand modules: calls into the next one.
 */
int pass(int (**next)(void *), void *arg);

int pass(int (**next)(void *), void *arg)
{
	volatile int r = (*next)(next + 1);

	(void)arg;
	return r + 1;
}
