/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * clock.h - a clock in place of that in tools/shstk.c: each look at it takes CLOCK_STEP ns, which the
 * target defines. So an input does the same in each run, and what waits for a time does not wait.
 */
#ifndef SELFTESTS_FUZZ_CLOCK_H
#define SELFTESTS_FUZZ_CLOCK_H

#include <stdint.h>
#include <time.h>

uint64_t now_ns(clockid_t clock)
{
	static uint64_t now;

	(void)clock;
	return now += CLOCK_STEP;
}

#endif
