// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * allocate.c - allocates by jemalloc, for its heap profiler.
 *
 *	allocate plain|hook PROFILE	keeps allocations of many stacks; writes a profile of them
 *	allocate plain|hook cost ROUNDS	allocates and frees ROUNDS times, 30 calls deep; prints the
 *					nanoseconds of CPU time for each
 *
 * With "hook", stacks are those of examples/hooks/jemalloc.c. Prints how many captures libshstk
 * made.
 */
#include <jemalloc/jemalloc.h>
#include <shstk.h>
#include <string.h>

#include "spend.h"

int shstk_hook_jemalloc(void);

static __attribute__((noinline)) void keep(void *arg)
{
	kept = malloc(*(const int *)arg);
	__asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void other(void *arg)
{
	keep(arg);
	__asm__ volatile("" ::: "memory");
}

/* Allocates in stacks of 1 to 149 calls, more than jemalloc keeps, with a size for each. */
static int keep_all(const char *profile)
{
	for (int depth = 1; depth < 150; depth++) {
		int size = 1000 + depth;

		deep(depth, depth % 3 ? keep : other, &size);
	}
	return mallctl("prof.dump", NULL, NULL, &profile, sizeof(profile));
}

int main(int argc, char **argv)
{
	struct shstk_stats stats = { .size = sizeof(stats) };
	int err = 0;

	if (argc < 3 || (!strcmp(argv[1], "hook") && (err = shstk_hook_jemalloc()))) {
		fprintf(stderr, "allocate: %s\n", err ? strerror(err) : "see allocate.c");
		return 1;
	}
	if (argc == 4)
		print_cost(atol(argv[3]));
	else if ((err = keep_all(argv[2])))
		fprintf(stderr, "allocate: no profile: %s\n", strerror(err));
	shstk_get_stats(&stats);
	printf("%lu captures\n", (unsigned long)stats.captures);
	return err != 0;
}
