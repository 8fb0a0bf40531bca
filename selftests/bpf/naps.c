// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * naps.c - sleeps many times in a function that three others lead to.
 */
#include <time.h>

#define NOINLINE __attribute__((noinline, noclone))
#define NAPS 200

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

int main(void)
{
	int sum = 0;

	for (int i = 0; i < NAPS; i++)
		sum += outer();
	return !sum;
}
