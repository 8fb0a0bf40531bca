// SPDX-License-Identifier: GPL-2.0-or-later
/* burn.c - half a second of CPU time at the end of some calls, for CPU profilers. */
#include <time.h>

#define FN __attribute__((noinline))

static volatile unsigned long sink;

FN void leaf(void)
{
	while (clock() < CLOCKS_PER_SEC / 2)
		for (unsigned long i = 0; i < 100000; i++)
			sink += i;
}

FN void down(int n)
{
	if (n)
		down(n - 1);
	else
		leaf();
	__asm__ volatile("");
}

int main(void)
{
	down(7);
	return 0;
}
