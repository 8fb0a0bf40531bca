// SPDX-License-Identifier: GPL-2.0-or-later
/* deep.c - a deep recursion of two functions that call each other as often as the argument says. */
#include <stdlib.h>
#include <unistd.h>

#define noinline __attribute__((noinline, noclone))

static volatile unsigned long count;

static void ping(long n);

static noinline void inner(void)
{
	write(1, "ready\n", 6);
	for (;;)
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
	if (argc != 2)
		return 2;
	ping(atol(argv[1]));
	return 0;
}
