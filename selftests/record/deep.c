// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * deep.c - works at every 40th of 400 nested calls, whose frames take half a KiB each: more than
 * perf events copy of a stack at once. Built with FEW, it has few calls with large frames: not more
 * than the kernel's callchains have entries.
 *
 *   deep MILLISECONDS     of its own CPU time
 */
#include <stdlib.h>
#include <time.h>

#ifdef FEW
#define CALLS 50
#define EVERY 10
#define FRAME 4096
#else
#define CALLS 400
#define EVERY 40
#define FRAME 512
#endif

#define WORK 40 /* ms of CPU time */

static volatile unsigned long sum;

static double used(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1e3 + ts.tv_nsec / 1e6;
}

/*
 * Works for a time of its own, not for so many turns: how many stacks change between two samples
 * then does not depend on how fast the machine is.
 */
static __attribute__((noinline)) void work(void)
{
	double end = used() + WORK;

	do {
		for (int i = 0; i < 100000; i++)
			sum += i;
	} while (used() < end);
}

static __attribute__((noinline)) int down(int n)
{
	char frame[FRAME];
	int ret = 0;

	frame[n & (FRAME - 1)] = n;
	sum += frame[0];
	if (n % EVERY == 0)
		work();
	if (n)
		ret = down(n - 1);
	sum += frame[3];
	return ret + 1;
}

int main(int argc, char **argv)
{
	double end = argc > 1 ? atof(argv[1]) : 1000;

	while (used() < end)
		sum += down(CALLS);
	return 0;
}
