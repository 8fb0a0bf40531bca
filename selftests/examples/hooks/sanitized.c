// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sanitized.c - allocates under AddressSanitizer.
 *
 *	sanitized ROUNDS	allocates and frees ROUNDS times, 30 calls deep; prints the nanoseconds of
 *				CPU time for each
 *
 * Linked with --wrap for the function at the end, the sanitizer's slow unwinder is one that takes the
 * whole trace by one call. The sanitizer has no hook for that; this shows what one would be worth.
 * Prints how many captures libshstk made.
 */
#include <shstk.h>

#include "spend.h"

int main(int argc, char **argv)
{
	struct shstk_stats stats = { .size = sizeof(stats) };

	if (argc != 2) {
		fprintf(stderr, "sanitized: see sanitized.c\n");
		return 1;
	}
	print_cost(atol(argv[1]));
	shstk_get_stats(&stats);
	printf("%lu captures\n", (unsigned long)stats.captures);
	return 0;
}

#define SANITIZER_ENTRIES 256

/* Calls of the sanitizer's own lie in front of the caller of malloc() or free(). */
#define SANITIZER_CALLS 8

/* The caller's return address is this near to the address that the sanitizer asks for. */
#define SANITIZER_NEAR 350

/**
 * struct sanitizer_trace - the sanitizer's object BufferedStackTrace
 * @entries: the first entry.
 * @n: number of entries.
 * @tag: not used here.
 * @all: room for entries.
 */
struct sanitizer_trace {
	uint64_t *entries;
	uint32_t n, tag;
	uint64_t all[SANITIZER_ENTRIES];
};

void slow_unwinder(struct sanitizer_trace *trace, uint64_t pc, uint32_t max) __asm__(
	"__wrap__ZN11__sanitizer18BufferedStackTrace10UnwindSlowEmj");

/*
 * Stands for BufferedStackTrace::UnwindSlow(), which gives at most @max entries; the first one is @pc
 * itself.
 */
__attribute__((no_sanitize("address"))) void slow_unwinder(struct sanitizer_trace *trace,
							   uint64_t pc, uint32_t max)
{
	int n = shstk_capture(trace->all, SANITIZER_ENTRIES, NULL, NULL), own = 0;

	while (own < n && own < SANITIZER_CALLS &&
	       trace->all[own] - pc + SANITIZER_NEAR > 2 * SANITIZER_NEAR)
		own++;
	n = n > own ? n - own : 0;
	trace->entries = trace->all + own;
	trace->n = (uint32_t)n < max ? (uint32_t)n : max;
	if (n)
		trace->entries[0] = pc;
}
