/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * lives.h - when the processes of a profile began and ended, for formats with a timeline.
 */
#ifndef SHSTK_LIVES_H
#define SHSTK_LIVES_H

#include "export.h"

#define SHSTK_LIVES_MOST 65536 /* beginnings and ends that a profile has at most */
#define SHSTK_LIFE_TEXT 128 /* bytes of a text of shstk_life_format() at most */

/* Does what shstk_profile_live() does, also if the profile has no times yet. */
int shstk_lives_add(struct shstk_profile *profile, const struct shstk_life *life);

/**
 * shstk_lives_shown() - list the beginnings and ends of the processes that have samples
 * @profile: the profile.
 * @first: the time that becomes 0, such as @first of &struct shstk_items; UINT64_MAX: nothing is
 *	listed.
 * @nr: receives the number of elements.
 *
 * They are sorted by process and time. What was before @first has time 0, too.
 *
 * Return: the list, to be freed; NULL when memory runs out.
 */
struct shstk_life *shstk_lives_shown(const struct shstk_profile *profile, uint64_t first,
				     size_t *nr);

/*
 * Returns the first of the lives of a process in a list that shstk_lives_shown() made, and their
 * number in @count.
 */
const struct shstk_life *shstk_lives_of(const struct shstk_life *list, size_t nr, int pid,
					size_t *count);

/* Returns "process began" or "process ended". */
const char *shstk_life_name(const struct shstk_life *life);

/* Writes a beginning or an end as a line for files: "ended 1234 99000000 name". @clock is added. */
void shstk_life_format(const struct shstk_life *life, int64_t clock, char text[SHSTK_LIFE_TEXT]);

/* Reads such a line. @life's name points into @text. Returns whether it is one. */
bool shstk_life_parse(const char *text, int64_t clock, struct shstk_life *life);

#endif /* SHSTK_LIVES_H */
