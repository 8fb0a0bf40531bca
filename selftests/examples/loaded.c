// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What examples/loader.c loads in guests. It says whether it has a shadow stack with the calls of
 * its functions, and whether its arguments and environment are its own. Prints KTAP. It does
 * without libshstk, which calls dlsym() at its start: that ends in a longjmp() in a static
 * program, and Debian's C library has none that keeps the shadow stack right.
 */
#include "tools/inject/preload/ssp.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed;

static void point(int number, int good, const char *name)
{
	printf("%sok %d %s\n", good ? "" : "not ", number, name);
	failed |= !good;
}

/* The youngest entries of the shadow stack: the return addresses of this function and of main(). */
static __attribute__((noinline)) int same_calls(void *outer)
{
	const uint64_t *ssp = (const uint64_t *)read_ssp();
	const uint64_t here = (uint64_t)__builtin_return_address(0);

	return ssp && ssp[0] == here && ssp[1] == (uint64_t)outer;
}

int main(int argc, char **argv)
{
	void *outer = __builtin_extract_return_addr(__builtin_return_address(0));

	printf("KTAP version 1\n1..4\n");
	point(1, read_ssp() != 0, "the loaded program has a shadow stack");
	point(2, same_calls(outer), "it has the calls of main() and of what main() calls");
	point(3, argc == 2 && strstr(argv[0], "loaded") && !strcmp(argv[1], "word"),
	      "its arguments are its own");
	point(4, getenv("PATH") != NULL, "it has the environment");
	return failed;
}
