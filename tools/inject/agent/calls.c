// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * calls.c - shares a thread's time in the kernel between system calls and the rest; see calls.h.
 *
 * System calls get as many silent periods as the timer's signals say. The rest is time of page
 * faults and interrupts, and nothing tells where that was spent. What the timer says has a
 * statistical error. If calls got as much more as that error may be, they would get the interrupts
 * of user code, too, which are one or two percent of its time. If all that is beyond what the timer
 * says so far were given to no call at once, what the timer says later would come too late. So
 * periods are given to no call only if they are more than twice the error beyond it. The others wait
 * for calls that the timer finds later, or for the end of the thread.
 */
#include "calls.h"

static uint64_t root(uint64_t x)
{
	uint64_t ret = 0;

	for (uint64_t bit = 1ull << 31; bit; bit /= 2)
		if ((ret + bit) * (ret + bit) <= x)
			ret += bit;
	return ret;
}

void calls_count(struct calls *c, bool in_call, uint64_t at)
{
	c->ticks++;
	c->found += in_call;
	c->time += in_call ? at - c->last : 0;
	c->last = at;
}

/* Returns how many more periods calls get if they have @time ns in all. */
static uint64_t periods_up_to(const struct calls *c, uint64_t time, uint64_t period)
{
	uint64_t periods = (time + period - 1) / period;

	return periods > c->taken ? periods - c->taken : 0;
}

uint64_t calls_share(const struct calls *c, uint64_t silent, bool in_call, uint64_t period)
{
	uint64_t most = periods_up_to(c, c->time, period), error;

	if (in_call)
		return silent < most ? silent : most;
	error = root(c->found * (c->ticks - c->found) / c->ticks) *
		((c->last - c->since) / c->ticks);
	most = periods_up_to(c, c->time + 2 * period + 2 * error, period);
	return silent > most ? silent - most : 0;
}
