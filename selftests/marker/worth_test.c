// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * worth_test.c - markers are placed where they save more than they cost, by the one rule of
 * Documentation/markers.rst. The program goes down functions with frame pointers, and captures
 * there: once and returns, when no marker there is ever met again; or many times. The library's
 * own state tells how many were placed, and how far captures have to walk.
 */
#include <stdbool.h>
#include <stdio.h>

#include "marker/marker.h"

#define DEEP 40
#define DEEPER 400
#define ROUNDS 4000
#define WARM 2000 /* rounds after which a thread has paid for its first markers */
#define NEAR 8 /* frames in front of a marker among which no other is placed */

static unsigned int captures, far;
static struct shstk_info *asked; /* receives what captures tell, or NULL */

static __attribute__((noinline)) void leaf(unsigned int times)
{
	static uint64_t pcs[2 * DEEPER];
	int n;

	while (times--) {
		n = shstk_marker_capture(pcs, 2 * DEEPER, asked);
		captures++;
		if (!markers_self)
			return; /* this machine has no markers */
		far += n - (int)markers_self->mark[markers_self->n].rest >= NEAR;
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

/*
 * Returns how many markers were placed in so many rounds. Trampolines are given out in order, so
 * their numbers tell.
 */
static unsigned int placed(unsigned int rounds, unsigned int deep, unsigned int times)
{
	unsigned int i, before = markers_self->next;

	captures = far = 0;
	for (i = 0; i < rounds; i++)
		down(deep, times);
	printf("# %u captures, %u deep: %u markers; %u walked %u frames or more\n", captures, deep,
	       markers_self->next - before, far, NEAR);
	return markers_self->next - before;
}

/* Makes many captures at one deep place. Returns whether few of them walked far. */
static bool soon_near(struct shstk_info *info)
{
	asked = info;
	shstk_marker_withdraw();
	placed(1, DEEPER, 100 * ROUNDS);
	asked = NULL;
	return captures && far < captures / 100;
}

int main(void)
{
	struct shstk_info info = { .size = sizeof(info) };
	bool seldom, never, near, told;

	printf("TAP version 13\n");
	leaf(1);
	if (shstk_marker_status() != SHSTK_MARKER_ON) {
		printf("1..0 # SKIP no markers: %s\n", shstk_marker_name(shstk_marker_status()));
		return 4;
	}
	printf("1..4\n");
	placed(WARM, DEEP, 1);
	seldom = placed(ROUNDS, DEEP, 1) <= ROUNDS / 20;
	printf("%s 1 seldom where captures have nothing in common\n", seldom ? "ok" : "not ok");
	never = !placed(ROUNDS, 1, 100) && !far;
	printf("%s 2 never on a shallow stack\n", never ? "ok" : "not ok");
	near = soon_near(NULL);
	printf("%s 3 captures at one place soon have one near\n", near ? "ok" : "not ok");
	/* These are not of the usual case, nor are those whose records share a place in the table. */
	told = soon_near(&info);
	printf("%s 4 those that ask how they end, too\n", told ? "ok" : "not ok");
	return !(seldom && never && near && told);
}
