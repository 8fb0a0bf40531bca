/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * truth.h - a program that keeps its own list of return addresses.
 *
 * TRUTH_ENTER() at the start of a function notes its return address,
 * TRUTH_LEAVE() drops it. What a capture returns must be that list, innermost
 * first, below the entries of the test itself.
 */
#ifndef TRUTH_H
#define TRUTH_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "shstk.h"

#define TRUTH_MAX 20000

struct truth {
	int n;
	uint64_t ra[TRUTH_MAX];
};

extern __thread struct truth *truth;

static inline uint64_t truth_strip(void *ra)
{
#ifdef __aarch64__
	register uint64_t lr __asm__("x30") = (uintptr_t)ra;

	__asm__("hint #7" : "+r"(lr));
	return lr;
#else
	return (uintptr_t)ra;
#endif
}

#define TRUTH_ENTER() (truth->ra[truth->n++] = truth_strip(__builtin_return_address(0)))
#define TRUTH_LEAVE() (truth->n--)

#ifdef __clang__
#define noinline __attribute__((noinline))
#else
#define noinline __attribute__((noinline, noclone))
#endif

/* Keeps the call in front of it from becoming a jump. */
#define NO_TAIL_CALL() __asm__ volatile("" ::: "memory")

#define INFO() ((struct shstk_info){ .size = sizeof(struct shstk_info) })
#define OPTS(...) ((struct shstk_opts){ .size = sizeof(struct shstk_opts), __VA_ARGS__ })

/* Returns whether the trace holds the truth from entry @first on, and prints where it does not. */
static inline int truth_equal(const uint64_t *pcs, int n, int first)
{
	static int said;
	int i;

	if (n - first < truth->n) {
		if (said++ < 5)
			printf("# %d entries, %d expected above %d\n", n, truth->n, first);
		return 0;
	}
	for (i = 0; i < truth->n; i++) {
		uint64_t want = truth->ra[truth->n - 1 - i];

		if (pcs[first + i] == want)
			continue;
		if (said++ < 5)
			printf("# entry %d: %#llx, expected %#llx\n", first + i,
			       (unsigned long long)pcs[first + i], (unsigned long long)want);
		return 0;
	}
	return 1;
}

/* Calls @leaf below @depth frames of this function. It is in tree.c. */
int truth_recurse(int depth, void (*leaf)(void));

#endif
