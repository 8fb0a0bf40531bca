// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sframe_run.c - captures of its own stack in a program whose .eh_frame was
 * removed: only .sframe describes its functions. Prints KTAP.
 */
#include <alloca.h>
#include <stdio.h>
#include <string.h>

#include "shstk.h"

#define NOINLINE __attribute__((noinline, noclone))
#define MAX 128
#define LEVELS 24

static uint64_t truth[MAX];
static unsigned int ntruth;
static unsigned long traces, wrong, guessed, shorter;

#define ENTER() (truth[ntruth++] = (uintptr_t)__builtin_return_address(0))
#define LEAVE() (ntruth--)

/* Compares a trace with the truth. @first: entry that is the innermost one of the truth. */
static void judge(const uint64_t *pcs, const uint8_t *marks, int n, int first)
{
	unsigned int i;

	traces++;
	for (i = 0; i < ntruth; i++) {
		if ((int)i + first >= n) {
			shorter++;
			return;
		}
		if (pcs[first + i] != (truth[ntruth - 1 - i] & 0x0000ffffffffffffull)) {
			wrong++;
			return;
		}
		if (marks[first + i] & SHSTK_MARK_GUESS) {
			guessed++;
			return;
		}
	}
}

static NOINLINE void capture(void)
{
	struct shstk_opts opts = { .size = sizeof(opts) };
	uint8_t marks[MAX] = { 0 };
	uint64_t pcs[MAX];
	int n;

	ENTER();
	opts.marks = marks;
	n = shstk_capture(pcs, MAX, &opts, NULL);
	judge(pcs, marks, n, 1);
	LEAVE();
}

static NOINLINE int dynamic(int n, int (*next)(int));

#ifdef FLEXIBLE
/* A frame whose CFA is loaded from memory, which only version 3 can express. */
static NOINLINE int aligned(int n)
{
	char room[64] __attribute__((aligned(64)));
	char *p = alloca(n * 16 + 16);
	int r;

	ENTER();
	memset(room, n, sizeof(room));
	memset(p, n, n * 16 + 16);
	r = n ? dynamic(n - 1, aligned) : (capture(), 0);
	LEAVE();
	return r + room[n] + p[n];
}
#endif

static NOINLINE int fixed(int n)
{
	volatile char room[64 + 1];
	int r;

	ENTER();
	room[n] = n;
	r = n ? dynamic(n - 1, fixed) : (capture(), 0);
	LEAVE();
	return r + room[n];
}

/* A frame whose CFA is computed from the frame pointer. */
static NOINLINE int dynamic(int n, int (*next)(int))
{
	char *p = alloca(n * 16 + 16);
	int r;

	ENTER();
	memset(p, n, n * 16 + 16);
	r = n ? next(n - 1) : (capture(), 0);
	LEAVE();
	return r + p[n];
}

int main(void)
{
	volatile int sum = 0;
	int i;

	for (i = 0; i < 2000; i++) {
#ifdef FLEXIBLE
		if (i % 3 == 2)
			sum += aligned(i % LEVELS);
		else
#endif
			sum += fixed(i % LEVELS);
	}
	printf("KTAP version 1\n1..1\n# %lu traces, %lu wrong, %lu guessed, %lu short\n", traces,
	       wrong, guessed, shorter);
	printf("%sok 1 every frame by SFrame alone\n",
	       traces < 2000 || wrong || guessed || shorter ? "not " : "");
	return wrong || guessed || shorter;
}
