/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * items.h - the samples of a profile, thread by thread, for formats that show each thread on its
 * own.
 */
#ifndef SHSTK_ITEMS_H
#define SHSTK_ITEMS_H

#include "export.h"

/**
 * struct shstk_item - a sample
 * @record: its stack and thread.
 * @time: ns since the first sample of all. Where no times are kept, or values are changes of a level
 *	(shstk_moments_fall()), the sum of the values of the samples of its thread before it.
 * @value: value of the type that is shown, above 0.
 */
struct shstk_item {
	const struct shstk_record *record;
	uint64_t time;
	int64_t value;
};

/**
 * struct shstk_items - all samples
 * @v: the samples, sorted by process, thread and time.
 * @nr: number of samples.
 * @first: time of the first sample of all, or of the first change of a level, in ns of
 *	CLOCK_MONOTONIC; UINT64_MAX where no times are kept.
 */
struct shstk_items {
	struct shstk_item *v;
	size_t nr;
	uint64_t first;
};

/**
 * shstk_items_make() - list all samples with a value above 0
 * @profile: the profile.
 * @type: index of the value type whose values are taken.
 * @ret: receives the samples; give them to shstk_items_deinit().
 *
 * Return: 0 or -ENOMEM.
 */
int shstk_items_make(const struct shstk_profile *profile, unsigned int type,
		     struct shstk_items *ret);
void shstk_items_deinit(struct shstk_items *items);

/* Returns the index behind the last sample of the thread that sample @from belongs to. */
size_t shstk_items_end(const struct shstk_items *items, size_t from);

/*
 * Returns the name of a thread for people, "name 12/13" with the parts that are known. The string
 * is in a pool; NULL when memory runs out.
 */
const char *shstk_item_thread(const struct shstk_profile *profile, const struct shstk_item *item);

#endif /* SHSTK_ITEMS_H */
