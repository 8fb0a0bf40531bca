// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * random.c - samples by bytes as a Poisson process.
 *
 * Every byte allocated is a sample point with probability 1/R; a block is sampled if one of its
 * bytes is. The distance to the next point is distributed exponentially with mean R. A block of s
 * bytes is sampled with the probability p = 1 - exp(-s/R), so each sampled block stands for 1/p
 * blocks: sums are unbiased for any mix of sizes.
 *
 * log() and exp() are computed here, because the agent loads no further library into its targets.
 */
#include "heap.h"

static uint64_t next_random(void)
{
	uint64_t x = local.random;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	local.random = x;
	return x * 0x2545f4914f6cdd1dULL;
}

#define LN2 0.69314718055994530942

/* Returns ln(x) of a normal x > 0: 2 artanh((m-1)/(m+1)) of the mantissa. */
static double natural_log(double x)
{
	union {
		double d;
		uint64_t u;
	} v = { x };
	int e = (int)(v.u >> 52 & 0x7ff) - 1022;
	double t, t2, sum = 0;

	v.u = (v.u & 0xfffffffffffffULL) | 0x3fe0000000000000ULL;
	if (v.d < 0.70710678118654752) {
		v.d *= 2;
		e--;
	}
	t = (v.d - 1) / (v.d + 1);
	t2 = t * t;
	for (int k = 21; k >= 1; k -= 2)
		sum = sum * t2 + 1.0 / k;
	return 2 * t * sum + e * LN2;
}

/* Returns 1 - exp(-x) for x >= 0. */
static double hit(double x)
{
	double sum = 0, rest;
	int halvings = 0;

	if (x > 40)
		return 1;
	for (; x > 0.5; x /= 2)
		halvings++;
	/* x - x^2/2! + x^3/3! - ... */
	for (int k = 14; k >= 1; k--)
		sum = x / k * (1 - sum);
	/* 1 - e^-2x = 1 - (e^-x)^2 */
	for (rest = 1 - sum; halvings; halvings--)
		rest *= rest, sum = 1 - rest;
	return sum;
}

uint64_t random_distance(void)
{
	/* u is in (0, 1]. */
	double u = ((next_random() >> 11) + 1) * 0x1p-53;

	return (uint64_t)(-natural_log(u) * (double)heap.sample);
}

uint64_t random_scale(uint64_t size, uint64_t *bytes)
{
	double weight = 1 / hit((double)SAMPLED_SIZE(size) / (double)heap.sample);

	*bytes = (uint64_t)((double)size * weight + 0.5);
	return (uint64_t)(weight * HEAP_ONE + 0.5);
}
