// SPDX-License-Identifier: GPL-2.0-or-later
/* allocs.c - the same allocations each time, for heap profilers. */
#include <stdlib.h>

#define FN __attribute__((noinline))

static void *volatile sink;

FN void leaf(int size)
{
	sink = malloc(size);
}

FN void left(int n)
{
	if (n)
		left(n - 1);
	else
		leaf(1000);
	__asm__ volatile("");
}

FN void right(int n)
{
	for (int i = 0; i < 10; i++)
		left(n);
	__asm__ volatile("");
}

int main(void)
{
	for (int i = 0; i < 20; i++) {
		left(i);
		right(i / 2);
	}
	return 0;
}
