// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * worth_test.c - markers are placed where they save more than they cost. The program
 * goes down a few dozen functions without frame pointers, and captures there: once and
 * returns, when no marker is ever met again; or many times. The library's own state
 * tells whether there was a marker.
 */
#include <stdbool.h>
#include <stdio.h>

#include "shstk.h"
#include "thread.h"

#define DEEP	40
#define ROUNDS	4000
#define WARM	1000	/* by then it should be known */

static unsigned int captures, marked;

static __attribute__((noinline)) void leaf(unsigned int times)
{
	uint64_t pcs[256];

	while (times--) {
		if (shstk_capture(pcs, 256, NULL, NULL) < DEEP)
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
static unsigned int share(unsigned int times)
{
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		if (i == WARM)
			captures = marked = 0;
		down(DEEP, times);
	}
	printf("# %u captures in each call: a marker for %u of %u\n", times, marked,
	       captures);
	return captures ? (unsigned int)(1000ull * marked / captures) : 500;
}

int main(void)
{
	bool seldom, often;

	printf("TAP version 13\n");
	if (shstk_markers_set(SHSTK_MARKERS_THREAD, 1)) {
		printf("1..0 # SKIP no markers: %s\n",
		       shstk_markers_name(shstk_markers_status()));
		return 4;
	}
	printf("1..2\n");
	seldom = share(1) < 50;
	printf("%s 1 seldom where captures have nothing in common\n",
	       seldom ? "ok" : "not ok");
	often = share(1000) > 900;
	printf("%s 2 nearly always where a place captures again\n",
	       often ? "ok" : "not ok");
	return !(seldom && often);
}
