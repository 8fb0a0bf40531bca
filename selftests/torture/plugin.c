// SPDX-License-Identifier: GPL-2.0-or-later
/* plugin.c - a library that torture loads and unloads. */
int call_back(int (*fn)(void));

int call_back(int (*fn)(void))
{
	volatile int n = fn();

	return n;
}
