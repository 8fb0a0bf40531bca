/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * subordinate.h - the further ids that users have (subuid(5)), so that they can be counted as those
 * users.
 */
#ifndef TOOLS_RULES_SUBORDINATE_H
#define TOOLS_RULES_SUBORDINATE_H

#include <linux/shstk_rules.h>
#include <stddef.h>
#include <sys/stat.h>

/**
 * struct subordinate - the further ids, and what is known of the files that say so
 * @ranges: which ids count as which user, in ascending order; no id is in two ranges.
 * @nr: number of ranges.
 * @files: the states of the files when they were read; all bytes are 0 before.
 */
struct subordinate {
	struct shstk_rules_range *ranges;
	size_t nr;
	struct stat files[2];
};

/**
 * subordinate_read() - read who has which further ids
 * @subuid: the file that says so, as subuid(5).
 * @passwd: the file that says which id a user has, as passwd(5).
 * @ret: receives @ret->ranges and @ret->nr; the caller frees the ranges.
 *
 * Lines that say nothing valid, or begin with '#', are skipped. What two lines say is taken from the
 * one whose range begins first, or, if they begin together, from the first line. The ids that root has
 * go to containers, and root of the machine has no share: so each piece of 65536 of them, from the beginning
 * of their range, counts as one user, its first id. Pieces are larger where the module would not take so
 * many. The ids of a user who is not in @passwd, and no number, count as the first id of that user's that
 * the file has; but those of "containers", whom there need not be, are root's. Users that only a server
 * knows are not asked for: it may not answer.
 *
 * Return: 0, or a negative errno; then there are no ranges. A file that does not exist is like an
 * empty one.
 */
int subordinate_read(const char *subuid, const char *passwd, struct subordinate *ret);

/**
 * subordinate_tell() - tell the module who has which further ids, if that changed since the last call
 * @device: descriptor from rules_device().
 * @s: all bytes are 0 at the first call; the caller frees @s->ranges in the end.
 *
 * A module that is too old to be told counts each id by itself. What was told before holds if this fails,
 * and where memory was lacking, the next call tries again.
 *
 * Return: 0 or a negative errno.
 */
int subordinate_tell(int device, struct subordinate *s);

/**
 * subordinate_renew() - read anew who has which further ids, if that changed since the last call
 * @s: as for subordinate_tell(). What was known before holds if this fails.
 *
 * Return: 0 or a negative errno.
 */
int subordinate_renew(struct subordinate *s);

/* Returns the user as whom @uid counts. @s may be NULL. */
uid_t subordinate_user(const struct subordinate *s, uid_t uid);

#endif
