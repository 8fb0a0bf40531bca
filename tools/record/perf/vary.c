// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * vary.c - periods for threads that are shorter than a period. See vary.h.
 */
#include "tools/record/perf/vary.h"

#define PARTS 32 /* the smallest period is 1 / PARTS of the whole one */
#define LEAST 20000 /* ns; the kernel's smallest is 10000 */
#define EVEN 8 /* whole periods, after which moments are sampled evenly anyway */
#define GOLDEN 2654435769u /* of 2^32: multiples of it are spread evenly, however many there are */

void vary_init(struct vary *v, uint64_t whole)
{
	const uint64_t part = whole / PARTS;

	*v = (struct vary){
		.least = part > LEAST ? part : LEAST,
		.whole = whole,
	};
}

uint64_t vary_next(struct vary *v)
{
	const uint32_t at = ++v->step * GOLDEN;

	return v->least + ((v->whole - v->least) * at >> 32);
}

/*
 * Returns how many samples there are at the moment @at of a thread's life, for one in each period. That
 * moment is the end of the n-th period for those whose period is a n-th of it, and of n times as many
 * periods only every n-th is in one piece of time.
 */
static double density(const struct vary *v, uint64_t at)
{
	const uint64_t last = at / v->least;
	double sum = 0;

	for (uint64_t n = (at + v->whole - 1) / v->whole; n <= last; n++)
		sum += 1.0 / (n * n);
	return at * sum / (v->whole - v->least);
}

uint64_t vary_weight(const struct vary *v, uint64_t period, uint64_t counted)
{
	/* The timer of a period ends late, by more than a period of the smallest ones at times. */
	const uint64_t nth = period && counted > period ? counted / period : 1;
	double ret;

	if (period < v->least || period >= v->whole || nth * period > EVEN * v->whole)
		return period;
	ret = period / density(v, nth * period);
	/*
	 * No period ends sooner than the smallest one: the moments before that are taken to be like those
	 * in as much time behind it.
	 */
	if (nth == 1 && period < 2 * v->least)
		ret += ret * (v->least + counted - period) / v->least;
	return ret;
}
