/* SPDX-License-Identifier: GPL-2.0-or-later */
/* spend.h - what an allocation costs, for the programs that try stacks of allocators. */
#ifndef SPEND_H
#define SPEND_H

#include <stdlib.h>

#include "deep.h"

#define COST_DEPTH 30

static void *volatile kept;

static __attribute__((noinline)) void spend(void *arg)
{
	long rounds = *(const long *)arg;

	for (long i = 0; i < rounds; i++) {
		kept = malloc(100);
		free(kept);
	}
}

/* Prints the nanoseconds of CPU time that malloc() and free() take together, the mean of @rounds. */
static inline void print_cost(long rounds)
{
	uint64_t begin;
	long once = 1;

	deep(COST_DEPTH, spend, &once);
	begin = cpu_time();
	deep(COST_DEPTH, spend, &rounds);
	printf("%.1f ns\n", (double)(cpu_time() - begin) / rounds);
}

#endif
