// SPDX-License-Identifier: GPL-2.0-or-later
/* late_library.c - a library that changes.c loads while it runs. */

volatile int added = 1;

int in_late_library(int (*fn)(void));

int in_late_library(int (*fn)(void))
{
	return fn() + added;
}
