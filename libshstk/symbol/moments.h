/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * moments.h - the times at which the samples of a profile were taken.
 *
 * Either all times are kept, or at most a given number. When there would be more than that number,
 * time is divided into slots, and equal samples in one slot become one moment with the sum of their
 * values. The slots grow with the recording, so it takes bounded memory, however long it is.
 */
#ifndef SHSTK_MOMENTS_H
#define SHSTK_MOMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shstk_record;

/**
 * struct shstk_moment - equal samples at one time
 * @time: time in ns of CLOCK_MONOTONIC; with slots, the time when the slot begins.
 * @record: what was sampled.
 * @values: one value of each type.
 */
struct shstk_moment {
	uint64_t time;
	const struct shstk_record *record;
	int64_t values[];
};

/**
 * struct shstk_moments - the moments of a profile
 * @most: how many moments there may be; 0: none is kept, SIZE_MAX: all are.
 * @slot: length of a slot in ns; 0: times are exact.
 * @nr: number of moments.
 * @max: number of moments that @v has room for.
 * @size: bytes of one moment.
 * @v: the moments.
 */
struct shstk_moments {
	size_t most;
	uint64_t slot;
	size_t nr;
	size_t max;
	size_t size;
	uint8_t *v;
};

static inline struct shstk_moment *shstk_moments_at(const struct shstk_moments *moments, size_t i)
{
	return (struct shstk_moment *)(moments->v + i * moments->size);
}

/**
 * shstk_moments_add() - keep a moment
 * @moments: the moments.
 * @time: time of the sample, in ns of CLOCK_MONOTONIC.
 * @record: what was sampled.
 * @values: @nr_types values.
 * @nr_types: number of values, the same in each call.
 *
 * Return: 0 or -ENOMEM.
 */
int shstk_moments_add(struct shstk_moments *moments, uint64_t time,
		      const struct shstk_record *record, const int64_t *values,
		      unsigned int nr_types);
/*
 * Returns whether a moment has a value of @type below 0. Then the moments are changes of a level, such
 * as of the memory in use, and no samples that can be shown one by one: only their sum up to a
 * moment says something.
 */
bool shstk_moments_fall(const struct shstk_moments *moments, unsigned int type);
/* Forgets all moments. */
void shstk_moments_reset(struct shstk_moments *moments);
void shstk_moments_deinit(struct shstk_moments *moments);

#endif /* SHSTK_MOMENTS_H */
