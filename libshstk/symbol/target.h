/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* target.h - a file that a profile is written to, which replaces an old one once it is whole. */
#ifndef SHSTK_TARGET_H
#define SHSTK_TARGET_H

#include <stdbool.h>
#include <stdio.h>

/**
 * struct shstk_target - a file being written
 * @path: name that is shown to people.
 * @final: path of the file itself, links followed.
 * @temp: path that is written to, then renamed to @final; NULL if @final is written directly.
 * @out: the stream.
 * @made: @final is a regular file that was made for this.
 */
struct shstk_target {
	const char *path;
	char *final;
	char *temp;
	FILE *out;
	bool made;
};

/**
 * struct shstk_left - a file that another process finishes
 * @hidden: where it is until then; NULL: it has its name, or was not made.
 * @name: the name that it gets.
 *
 * Both are to be freed.
 */
struct shstk_left {
	char *hidden;
	char *name;
};

/*
 * Opens the file; "-" is standard output. A regular file is written under another name beside it.
 * Returns 0 or a negative errno, and nothing has to be released then.
 */
int shstk_target_open(struct shstk_target *target, const char *path);
/*
 * Gives the file its name, if it has another one yet; it may be written further. Returns 0 or a
 * negative errno.
 */
int shstk_target_name(struct shstk_target *target);
/*
 * Changes the name that the file will have, in the same folder. If it has its name already it loses
 * it, until it is given the new one. What was not made for this target keeps its name. Returns 0 or
 * a negative errno.
 */
int shstk_target_rename(struct shstk_target *target, const char *path);
/* Closes the file and releases @target; another process, a child, gives the file its name. */
void shstk_target_leave(struct shstk_target *target);
/* Closes the file, gives it its name, and releases @target. Returns 0 or a negative errno. */
int shstk_target_finish(struct shstk_target *target);
/* Closes the file and releases @target; a file that has not got its name is removed. */
void shstk_target_discard(struct shstk_target *target);

#endif /* SHSTK_TARGET_H */
