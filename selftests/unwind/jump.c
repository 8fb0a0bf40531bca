// SPDX-License-Identifier: GPL-2.0-or-later
/* jump.c - setjmp() and longjmp() out of several frames, and repeatedly. */
#include <setjmp.h>
#include <stdio.h>

static jmp_buf top, inner;
static volatile int jumping = 1;

__attribute__((noinline)) static int dive(int n, jmp_buf env)
{
	volatile char room[64];

	room[n] = n;
	if (n == 0 && jumping)
		longjmp(env, 7);
	if (n == 0)
		return 0;
	return dive(n - 1, env) + room[n];
}

__attribute__((noinline)) static int middle(void)
{
	int got = setjmp(inner);

	if (!got)
		return dive(4, inner);
	return got;
}

int main(void)
{
	volatile int rounds = 0, sum = 0;

	if (setjmp(top) && rounds == 3) {
		printf("%d\n", sum);
		return 0;
	}
	rounds++;
	sum += middle();
	dive(5, top);
	return 1;
}
