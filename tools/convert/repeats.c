// SPDX-License-Identifier: GPL-2.0-or-later
/* repeats.c - finds what a deep recursion repeats in a stack. See repeats.h. */
#include "tools/convert/repeats.h"

#define RUN_MIN 64 /* fewest entries that are worth to be shown once */
#define TIMES_MIN 4

/* Returns how often the first @period entries follow each other. */
static size_t count_times(const uint64_t *pcs, size_t nr, size_t period)
{
	size_t n = period;

	while (n < nr && pcs[n] == pcs[n - period])
		n++;
	return n / period;
}

bool repeats_find(const uint64_t *pcs, size_t nr, struct repeats *ret)
{
	for (unsigned int period = 1; period <= REPEATS_PERIOD; period++) {
		size_t times = count_times(pcs, nr, period);

		if (times < TIMES_MIN || times * period < RUN_MIN)
			continue;
		ret->period = period;
		ret->times = times;
		return true;
	}
	return false;
}
