// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * spin.c - half a second of CPU time in a function that three others lead to.
 */
#include <time.h>

#define NOINLINE __attribute__((noinline, noclone))

volatile unsigned long turns;
volatile int one = 1;

static double used(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static NOINLINE int innermost(void)
{
	for (unsigned int i = 0; i < 100000; i++)
		turns++;
	return one;
}

static NOINLINE int middle(void)
{
	return innermost() + one;
}

static NOINLINE int outer(void)
{
	return middle() + one;
}

int main(void)
{
	int sum = 0;

	while (used() < 0.5)
		sum += outer();
	return !sum;
}
