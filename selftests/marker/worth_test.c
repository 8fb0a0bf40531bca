// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * worth_test.c - markers are placed where they save more than they cost. The program
 * goes down functions without frame pointers, and captures there: once and returns, when
 * no marker is ever met again; or many times, when walking to a marker is worth it only if
 * what lies behind it is long. The library's own state tells whether there was a marker.
 */
#include <stdbool.h>
#include <stdio.h>

#include "shstk.h"
#include "thread.h"

#define DEEP 40
#define DEEPER 400
#define ROUNDS 4000
#define WARM 1000 /* by then it should be known */

static unsigned int captures, marked;

static __attribute__((noinline)) void leaf(unsigned int times)
{
	static uint64_t pcs[2 * DEEPER];

	while (times--) {
		if (shstk_capture(pcs, 2 * DEEPER, NULL, NULL) < DEEP)
			captures = marked = 0;
		captures++;
		marked += thread_self->marker.n > 0;
	}
}

static __attribute__((noinline)) unsigned int down(unsigned int n, unsigned int times)
{
	volatile unsigned int keep = n;

	if (n)
		keep += down(n - 1, times);
	else
		leaf(times);
	return keep;
}

/* Captures with a marker on the stack, in 1000, when the program has run for a while. */
static unsigned int share(unsigned int deep, unsigned int times)
{
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		if (i == WARM)
			captures = marked = 0;
		down(deep, times);
	}
	printf("# %u captures in each call, %u deep: a marker for %u of %u\n", times, deep, marked,
	       captures);
	return captures ? (unsigned int)(1000ull * marked / captures) : 500;
}

int main(void)
{
	bool seldom, short_seldom, often;

	printf("TAP version 13\n");
	if (shstk_markers_set(SHSTK_MARKERS_THREAD, 1)) {
		printf("1..0 # SKIP no markers: %s\n", shstk_markers_name(shstk_markers_status()));
		return 4;
	}
	printf("1..3\n");
	seldom = share(DEEP, 1) < 50;
	printf("%s 1 seldom where captures have nothing in common\n", seldom ? "ok" : "not ok");
	short_seldom = share(DEEP, 100) < 50;
	printf("%s 2 seldom where comparing the trace takes less time\n",
	       short_seldom ? "ok" : "not ok");
	often = share(DEEPER, 100) > 900;
	printf("%s 3 nearly always where a place captures again and the trace is long\n",
	       often ? "ok" : "not ok");
	return !(seldom && short_seldom && often);
}
