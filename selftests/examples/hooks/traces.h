/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * traces.h - for programs that take the same stack in several ways, and print it.
 *
 * The ways are functions of one form, called by one pointer at one place, and leave themselves out.
 * So all of them should give the same entries.
 */
#ifndef TRACES_H
#define TRACES_H

#include <unwind.h>

#include <cstdlib>
#include <cstring>

#include "deep.h"

#define MAX 200

/* Stores at most @max entries in @pcs, the first of which lies in the caller. Returns how many. */
typedef int take_fn(void **pcs, int max);

struct unwound {
	void **pcs;
	int n, max, skip;
};

static _Unwind_Reason_Code unwound_frame(struct _Unwind_Context *context, void *arg)
{
	struct unwound *to = static_cast<struct unwound *>(arg);

	if (to->skip) {
		to->skip--;
		return _URC_NO_REASON;
	}
	if (to->n == to->max || !_Unwind_GetIP(context))
		return _URC_END_OF_STACK;
	to->pcs[to->n++] = reinterpret_cast<void *>(_Unwind_GetIP(context));
	return _URC_NO_REASON;
}

/* The way that the others are compared with: the unwinder of the compiler. */
__attribute__((noinline)) static int take_libgcc(void **pcs, int max)
{
	struct unwound to = { pcs, 0, max, 1 };

	_Unwind_Backtrace(unwound_frame, &to);
	return to.n;
}

/* What happens at the end of the chain of calls. */
struct taken {
	take_fn *take;
	long rounds;
	int n;
	void *pcs[MAX];
};

__attribute__((noinline)) static void take_it(void *arg)
{
	struct taken *taken = static_cast<struct taken *>(arg);

	for (long i = 0; i < taken->rounds; i++)
		taken->n = taken->take(taken->pcs, MAX);
	__asm__ volatile("" ::: "memory");
}

/*
 * One way.
 * @name: printed before what it found.
 * @take: takes the trace.
 * @before: called before, or null.
 * @after: prints more of what @take found, or null.
 */
struct way {
	const char *name;
	take_fn *take;
	void (*before)();
	void (*after)();
};

/* Prints a line: the name, then the entries of a stack of 30 calls and those outside of them. */
static void print_trace(const struct way *way)
{
	struct taken taken = { way->take, 1, 0, {} };

	deep(30, take_it, &taken);
	printf("%s:", way->name);
	for (int i = 0; i < taken.n; i++)
		printf(" %p", taken.pcs[i]);
	printf("\n");
}

/* Prints the CPU time of one trace of such a stack, in nanoseconds. */
static void print_cost(const struct way *way, long rounds)
{
	struct taken taken = { way->take, 1, 0, {} };
	uint64_t begin;

	deep(30, take_it, &taken);
	taken.rounds = rounds;
	begin = cpu_time();
	deep(30, take_it, &taken);
	printf("%s %.1f ns\n", way->name, static_cast<double>(cpu_time() - begin) / rounds);
}

/*
 * Goes through the ways, up to one without a name, and prints traces. All are taken from the same
 * places, so their entries are the same, too. With two arguments, a name and a number of rounds,
 * prints what a trace of that name costs instead.
 */
__attribute__((noinline)) static void print_ways(int argc, char **argv, const struct way *way)
{
	for (; way->name; way++) {
		if (way->before)
			way->before();
		if (argc > 2 && !strcmp(argv[1], way->name))
			print_cost(way, atol(argv[2]));
		if (argc > 2)
			continue;
		print_trace(way);
		if (way->after)
			way->after();
	}
}

#endif
