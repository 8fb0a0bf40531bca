// SPDX-License-Identifier: GPL-2.0-or-later
#include <time.h>

#include "_cgo_export.h"
#include "work.h"

double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

__attribute__((noinline)) int c_spin(int n)
{
	volatile int sum = 0;

	for (int i = 0; i < n; i++)
		sum += i;
	return sum;
}

__attribute__((noinline)) int c_there(int depth, int n)
{
	volatile char room[400];

	room[depth & 255] = 1;
	return (depth > 1 ? c_there(depth - 1, n) : goBack(n)) + room[depth & 255];
}

static inline __attribute__((always_inline)) int c_inlined(int n)
{
	return goNames(n) + 1;
}

__attribute__((noinline)) int c_names(int n)
{
	return c_inlined(n) + 1;
}

__attribute__((noinline)) int c_crash(volatile int *nowhere)
{
	return *nowhere + 1;
}
