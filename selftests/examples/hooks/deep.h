/* SPDX-License-Identifier: GPL-2.0-or-later */
/* deep.h - a stack of a known depth, and CPU time, for the programs that try examples/hooks/. */
#ifndef DEEP_H
#define DEEP_H

#include <stdint.h>
#include <stdio.h>
#include <time.h>

/* Calls @fn with @arg at the end of a chain of @depth calls. */
static __attribute__((noinline, noclone)) void deep(int depth, void (*fn)(void *arg), void *arg)
{
	if (depth > 1)
		deep(depth - 1, fn, arg);
	else
		fn(arg);
	/* The call above is not the last thing that the function does, so it keeps its frame. */
	__asm__ volatile("" ::: "memory");
}

/* Returns the nanoseconds of CPU time that this thread has used. */
static inline uint64_t cpu_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

#endif
