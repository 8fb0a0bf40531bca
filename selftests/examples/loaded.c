// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What examples/loader.c loads in guests. It says whether it has a shadow stack with the calls of
 * its functions, and whether its arguments and environment are its own. Prints KTAP. libshstk is
 * linked into it, whose constructors run with the shadow stack that the program has from its
 * first instruction on: they may do nothing that Debian's C library, which knows of none, ends
 * by longjmp(), as dlsym() and the like in a static program.
 */
#include "tools/inject/preload/ssp.h"
#include <shstk.h>
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

/* The library's constructors have run; a capture is what the shadow stack has. */
static __attribute__((noinline)) int captures(void *outer)
{
	const uint64_t here = (uint64_t)__builtin_return_address(0);
	struct shstk_info info = { .size = sizeof(info) };
	uint64_t pcs[64];
	int n = shstk_capture(pcs, 64, NULL, &info);

	return n > 3 && info.source == SHSTK_SOURCE_HARDWARE && info.end == SHSTK_END_COMPLETE &&
	       pcs[1] == here && pcs[2] == (uint64_t)outer;
}

int main(int argc, char **argv)
{
	void *outer = __builtin_extract_return_addr(__builtin_return_address(0));

	printf("KTAP version 1\n1..5\n");
	point(1, read_ssp() != 0, "the loaded program has a shadow stack");
	point(2, same_calls(outer), "it has the calls of main() and of what main() calls");
	point(3, argc == 2 && strstr(argv[0], "loaded") && !strcmp(argv[1], "word"),
	      "its arguments are its own");
	point(4, getenv("PATH") != NULL, "it has the environment");
	point(5, captures(outer), "libshstk captures in it, from the shadow stack");
	return failed;
}
