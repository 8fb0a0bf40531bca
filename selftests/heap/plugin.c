// SPDX-License-Identifier: GPL-2.0-or-later
/* plugin.c - a library that is loaded late; two such libraries are loaded at the same address. */
#include <stdlib.h>

void *NAME(void);
void *NAME(void)
{
	void *volatile p = malloc(500);

	return p;
}
