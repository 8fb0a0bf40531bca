// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * naps.c - sleeps in a function that three others lead to: 200 times, or as often as the argument
 * says.
 */
#include <stdlib.h>
#include <time.h>

#define NOINLINE __attribute__((noinline, noclone))

volatile int one = 1;

static NOINLINE int innermost(void)
{
	const struct timespec ms = { .tv_nsec = 1000000 };

	nanosleep(&ms, NULL);
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
	const int naps = argc > 1 ? atoi(argv[1]) : 200;
	int sum = 0;

	for (int i = 0; i < naps; i++)
		sum += outer();
	return !sum;
}
