/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * shot.h - the samples of one interval of `shstk top`, with the names of their functions.
 *
 * The profile is emptied after each interval. What the screen shows is kept here, so that another
 * view of it can be shown at any time, and so that it stays while the screen is paused.
 */
#ifndef TOOLS_RECORD_TOP_SHOT_H
#define TOOLS_RECORD_TOP_SHOT_H

#include <stddef.h>
#include <stdint.h>

#include "libshstk/symbol/pool.h"
#include "libshstk/symbol/profile.h"

/**
 * struct top_shot_sample - equal samples of a thread
 * @value: their sum.
 * @pid: process ID.
 * @tid: thread ID.
 * @comm: name of the thread.
 * @nr: number of elements of @functions.
 * @functions: names, innermost first, inlined functions too; equal names are the same pointer.
 */
struct top_shot_sample {
	int64_t value;
	int pid;
	int tid;
	const char *comm;
	size_t nr;
	const char **functions;
};

/**
 * struct top_shot - the samples of an interval
 * @pool: all memory but @samples.
 * @type: what the values are, such as "cpu".
 * @unit: their unit.
 * @caution: the first caution of the profile, or NULL.
 * @total: their sum.
 * @nr: number of elements of @samples.
 * @samples: the samples.
 */
struct top_shot {
	struct shstk_pool pool;
	const char *type;
	const char *unit;
	const char *caution;
	int64_t total;
	size_t nr;
	struct top_shot_sample *samples;
};

/* Copies what a profile has. Returns NULL when memory runs out. */
struct top_shot *shot_take(const struct shstk_profile *profile);

/* Returns the copy of a function's name in the shot; NULL if no sample has such a function. */
const char *shot_name(const struct top_shot *shot, const char *name);

/* Releases a shot, or does nothing with NULL. */
void shot_drop(struct top_shot *shot);

#endif
