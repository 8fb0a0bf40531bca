/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * three_calls.h - CPU time in a function that two others lead to: outer(), which each program has
 * itself, calls middle(), and that calls innermost().
 */
#ifndef SELFTESTS_BPF_THREE_CALLS_H
#define SELFTESTS_BPF_THREE_CALLS_H

#include <time.h>

#define NOINLINE __attribute__((noinline, noclone))

volatile unsigned long turns;
volatile int one = 1;

/* Returns the CPU time of this thread, in seconds. */
static double used(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
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

#endif
