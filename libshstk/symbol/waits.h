/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * waits.h - what a thread did in a sample, and which values are levels, for formats with a timeline.
 */
#ifndef SHSTK_WAITS_H
#define SHSTK_WAITS_H

#include "export.h"

/* Returns the value of a label of a record, or NULL. */
const char *shstk_record_label(const struct shstk_record *record, const char *key);

/*
 * Returns why a thread was off the CPU in the samples of a record: "waiting" or "preempted"; NULL if
 * it was on it. Such a sample has the time at which the thread left the CPU, and its value is how
 * long it stayed away.
 */
const char *shstk_record_state(const struct shstk_value_type *type,
			       const struct shstk_record *record);

/* Returns the name of the function in which a thread waited: the innermost one outside the kernel. */
const char *shstk_record_place(const struct shstk_profile *profile,
			       const struct shstk_record *record);

/*
 * Returns whether the values of a type are changes of a level, such as of the memory in use: their sum
 * up to a moment is what held then.
 */
bool shstk_type_is_level(const struct shstk_profile *profile, unsigned int type);

/*
 * Returns all moments of a profile, those of each process together and in order of time; to be freed.
 * NULL when memory runs out. @first receives the time of the first of all.
 */
const struct shstk_moment **shstk_moments_by_process(const struct shstk_profile *profile,
						     uint64_t *first);

#endif /* SHSTK_WAITS_H */
