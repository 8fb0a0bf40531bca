// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * spin.c - CPU time in a function that three others lead to: half a second, or as many seconds as the
 * argument says.
 */
#include <stdlib.h>
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

int main(int argc, char **argv)
{
	const double seconds = argc > 1 ? atof(argv[1]) : 0.5;
	int sum = 0;

	while (used() < seconds)
		sum += outer();
	return !sum;
}
