// SPDX-License-Identifier: GPL-2.0-or-later
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "_cgo_export.h"
#include "calls.h"

#define NOINLINE __attribute__((noinline))
/* A call that stays a call, even if the compiler knows that its result is not used. */
#define KEEP_FRAME(type, call)               \
	({                                   \
		volatile type kept = (call); \
		kept;                        \
	})
#define SIGNALS 200 /* signals in one round */

NOINLINE static int c_spin(int n)
{
	volatile int sum = 0;

	for (int i = 0; i < n; i++)
		sum += i;
	return sum;
}

NOINLINE int c_small(int depth, int n)
{
	return KEEP_FRAME(int, depth > 1 ? c_small(depth - 1, n) : c_spin(n));
}

NOINLINE int c_large(int depth, int n)
{
	volatile char room[400];

	room[depth & 255] = 1;
	return (depth > 1 ? c_large(depth - 1, n) : c_spin(n)) + room[depth & 255];
}

NOINLINE int c_below(int depth, int n)
{
	return KEEP_FRAME(int, depth > 1 ? c_below(depth - 1, n) : goBack(n));
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

/*
 * Measures a signal. The runtime asks for a traceback at every signal in C, and then ignores this
 * one unless a profile is being taken.
 */
NOINLINE static double time_signals(int rounds)
{
	pid_t process = getpid(), thread = syscall(SYS_gettid);
	double least = 1e18, ns;

	while (rounds--) {
		ns = -now();
		for (int i = 0; i < SIGNALS; i++)
			syscall(SYS_tgkill, process, thread, SIGPROF);
		ns = (ns + now()) / SIGNALS;
		least = ns < least ? ns : least;
	}
	return least;
}

NOINLINE double c_signals(int depth, int rounds)
{
	return KEEP_FRAME(double, depth > 2 ? c_signals(depth - 1, rounds) : time_signals(rounds));
}
