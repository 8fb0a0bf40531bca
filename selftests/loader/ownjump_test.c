// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ownjump_test.c - jumps out of several frames by the compiler's own instructions, which nothing
 * can interpose. Floating-point values are live across the return that goes wrong.
 */
#include <stdio.h>

static void *buf[5];
static volatile double third = 1.0 / 3;

static __attribute__((noinline)) void dive(int depth)
{
	if (!depth)
		__builtin_longjmp(buf, 1);
	dive(depth - 1);
	__asm__ volatile("" : : : "memory");
}

static __attribute__((noinline)) double catcher(int depth)
{
	double v = third * 3;

	if (!__builtin_setjmp(buf))
		dive(depth);
	return v + third;
}

static __attribute__((noinline)) double outer(int depth)
{
	double v = catcher(depth) + 1;

	__asm__ volatile("" : : : "memory");
	return v;
}

int main(void)
{
	double sum = 0;

	for (int i = 0; i < 100; i++)
		sum += outer(i % 20);
	printf("sum %.3f\n", sum);
	return 0;
}
