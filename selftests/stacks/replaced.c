// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program, and a library of it, that are deleted or built anew while it runs: the test does so.
 */
void outer(void);

static volatile int done;

static __attribute__((noinline, noclone)) void run(void)
{
	outer();
	done = 1;
}

int main(void)
{
	run();
	return 0;
}
