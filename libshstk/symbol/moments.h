/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * moments.h - when the samples of a profile were taken.
 *
 * Either all of them are kept, or so many at most: then, when there would be more, time is
 * divided into slots, and what is equal in a slot becomes one moment with the sum of the values.
 * The slots grow with the recording, so it takes bounded memory, however long it is.
 */
#ifndef SHSTK_MOMENTS_H
#define SHSTK_MOMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shstk_record;

/**
 * struct shstk_moment - equal samples at one time
 * @time: ns of CLOCK_MONOTONIC; with slots, when the slot begins.
 * @record: what was sampled.
 * @values: a value of each type.
 */
struct shstk_moment {
	uint64_t time;
	const struct shstk_record *record;
	int64_t values[];
};

/**
 * struct shstk_moments - the moments of a profile
 * @most: how many there may be; 0: none is kept, SIZE_MAX: all are.
 * @slot: ns in a slot; 0: times are exact.
 * @nr: how many there are.
 * @max: room for so many.
 * @size: bytes of one.
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
 * @time: when.
 * @record: what was sampled.
 * @values: @nr_types values, always as many.
 * @nr_types: the number of values.
 *
 * Return: 0 or -ENOMEM.
 */
int shstk_moments_add(struct shstk_moments *moments, uint64_t time,
		      const struct shstk_record *record, const int64_t *values,
		      unsigned int nr_types);
/* Forget all. */
void shstk_moments_reset(struct shstk_moments *moments);
void shstk_moments_deinit(struct shstk_moments *moments);

#endif /* SHSTK_MOMENTS_H */
