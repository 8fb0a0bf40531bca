// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A library whose file is deleted while it runs: see replaced.c.
 */
#include <unistd.h>

void outer(void);
void middle(void);
void inner(void);

static volatile unsigned long count;

__attribute__((noinline)) void inner(void)
{
	if (!count)
		write(1, "ready\n", 6);
	for (;;)
		count++;
}

__attribute__((noinline)) void middle(void)
{
	inner();
	count = 0;
}

__attribute__((noinline)) void outer(void)
{
	middle();
	count = 1;
}
