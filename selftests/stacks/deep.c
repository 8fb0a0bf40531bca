// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * deep.c - a deep recursion of two functions that call each other as often as the argument says. It
 * works without end, or for as many milliseconds of CPU time as the second argument says.
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define noinline __attribute__((noinline, noclone))

static volatile unsigned long count;
static clock_t most; /* CPU time; 0: no end */

static void ping(long n);

static noinline void inner(void)
{
	write(1, "ready\n", 6);
	while (!most || clock() < most)
		for (int i = 0; i < 1000000; i++)
			count++;
}

static noinline void pong(long n)
{
	if (n > 1)
		ping(n - 1);
	else
		inner();
	count = 0;
}

static noinline void ping(long n)
{
	pong(n);
	count = 1;
}

int main(int argc, char **argv)
{
	if (argc != 2 && argc != 3)
		return 2;
	if (argc == 3)
		most = clock() + atol(argv[2]) * (CLOCKS_PER_SEC / 1000);
	ping(atol(argv[1]));
	return 0;
}
