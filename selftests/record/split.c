// SPDX-License-Identifier: GPL-2.0-or-later
/* split.c - works in an inlined function that only a .dwo file describes. */
#include <time.h>

static inline __attribute__((always_inline)) unsigned long inlined(unsigned long n)
{
	volatile unsigned long sum = 0;

	for (unsigned long i = 0; i < n; i++)
		sum += i;
	return sum;
}

static __attribute__((noinline)) unsigned long works(unsigned long n)
{
	return inlined(n) + 1;
}

int main(void)
{
	unsigned long sum = 0;

	while (clock() < CLOCKS_PER_SEC)
		sum += works(1000000);
	return !sum;
}
