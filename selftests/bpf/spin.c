// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * spin.c - CPU time in a function that three others lead to: half a second, or as many seconds as the
 * argument says.
 */
#include <stdlib.h>

#include "selftests/bpf/three_calls.h"

static NOINLINE int outer(void)
{
	return middle() + one;
}

int main(int argc, char **argv)
{
	const double seconds = argc > 1 ? atof(argv[1]) : 0.5;
	int sum = 0;

	while (used() < seconds)
		sum += outer();
	return !sum;
}
