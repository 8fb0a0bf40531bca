// SPDX-License-Identifier: GPL-2.0-or-later
/* noinfo.c - calls functions that have no unwind information (bare.S). */
#include <stdio.h>

long bare_frame(long (*f)(long), long x);
long bare_leave(long (*f)(long), long x);
long bare_push(long (*f)(long), long x);
long bare_leaf(long x);

static long call_back(long x)
{
	return bare_leaf(x) + 1;
}

static long again(long x)
{
	return bare_leave(call_back, x) + bare_frame(bare_leaf, x);
}

int main(void)
{
	long sum = bare_leaf(4);

	sum += bare_frame(call_back, 2);
	sum += bare_leave(call_back, 3);
	sum += bare_frame(again, 4);
	sum += bare_push(call_back, 5);
	sum += bare_push(again, 6);
	printf("%ld\n", sum);
	return 0;
}
