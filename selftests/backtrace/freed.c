// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * freed.c - for AddressSanitizer, which takes a stack at each malloc() and free().
 *
 *	freed		reads memory that was freed; the report has the stacks of the read, of free() and
 *			of malloc()
 *	freed TURNS	calls malloc() and free() so many times
 */
#include <stdlib.h>

#define FN __attribute__((noinline))

static void *volatile last;

FN static int turns(int n)
{
	while (n-- > 0) {
		free(last);
		last = malloc(16 + n % 16);
	}
	return 0;
}

FN static char *allocated(int depth)
{
	char *p;

	if (depth)
		return allocated(depth - 1) + 0;
	p = malloc(40);
	p[3] = 1;
	return p;
}

FN static void freed(char *p, int depth)
{
	if (depth)
		freed(p, depth - 1);
	else
		free(p);
	last = NULL;
}

int main(int argc, char **argv)
{
	char *p;

	if (argc > 1)
		return turns(atoi(argv[1]));
	p = allocated(12);
	freed(p, 9);
	return p[3];
}
