// SPDX-License-Identifier: GPL-2.0-or-later
/* noinfo.c - calls functions that have no unwind information (noinfo_functions.S). */
#include <stdio.h>

long noinfo_frame(long (*f)(long), long x);
long noinfo_leave(long (*f)(long), long x);
long noinfo_push(long (*f)(long), long x);
long noinfo_leaf(long x);

static long call_back(long x)
{
	return noinfo_leaf(x) + 1;
}

static long again(long x)
{
	return noinfo_leave(call_back, x) + noinfo_frame(noinfo_leaf, x);
}

int main(void)
{
	long sum = noinfo_leaf(4);

	sum += noinfo_frame(call_back, 2);
	sum += noinfo_leave(call_back, 3);
	sum += noinfo_frame(again, 4);
	sum += noinfo_push(call_back, 5);
	sum += noinfo_push(again, 6);
	printf("%ld\n", sum);
	return 0;
}
