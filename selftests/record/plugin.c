// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * plugin.c - a library for the record test, built under several names: one function that uses as
 * much CPU time as it is told.
 */
#include <time.h>

int NAME(long ms);

int NAME(long ms)
{
	volatile unsigned int x = 0;
	struct timespec start, ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	do {
		for (int i = 0; i < 20000; i++)
			x += i;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	} while ((ts.tv_sec - start.tv_sec) * 1000 + (ts.tv_nsec - start.tv_nsec) / 1000000 < ms);
	return x;
}
