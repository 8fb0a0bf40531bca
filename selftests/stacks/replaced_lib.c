// SPDX-License-Identifier: GPL-2.0-or-later
/* replaced_lib.c - the library of replaced.c, whose file is deleted while the program runs. */
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
