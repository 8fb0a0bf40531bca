// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * replaced.c - a program that calls a library. The test deletes both files, or builds them anew,
 * while the program runs.
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
