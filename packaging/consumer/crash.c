// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The smallest program that uses libshstk-crash: it crashes, and the report of that goes to standard
 * error. An argument is the path of the command shstk, for one that is not installed.
 */
#include <stdio.h>

#include <shstk_crash.h>

__attribute__((noinline)) static int careless(const volatile int *number)
{
	return *number + 1;
}

int main(int argc, char **argv)
{
	struct shstk_crash_opts opts = { .size = sizeof(opts) };

	if (argc > 1)
		opts.command = argv[1];
	if (shstk_crash_install(&opts)) {
		fputs("no handlers\n", stderr);
		return 1;
	}
	return careless(NULL) + 1;
}
