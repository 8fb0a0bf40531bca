/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * targets.h - what runs already and is to be recorded: processes by number or name, with the
 * children that they have, or threads.
 */
#ifndef TOOLS_RECORD_TARGETS_TARGETS_H
#define TOOLS_RECORD_TARGETS_TARGETS_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define TARGETS_MAX 4096 /* most processes, and most threads, that can be given */
#define TARGETS_ALL 65536 /* most processes of one recording, with their children */
#define TARGETS_NAMES 64

/**
 * struct targets - what runs already and is to be recorded
 * @pids: processes. targets_find() adds first those that have one of @names, then children.
 * @nr_pids: number of @pids.
 * @max_pids: how many @pids there is memory for.
 * @given: number of @pids that were given by number or name, not added as children; set by
 *	targets_find().
 * @tids: threads.
 * @nr_tids: number of @tids.
 * @names: names of processes to record.
 * @nr_names: number of @names.
 * @alone: do not add children.
 * @refused: number of children that belong to other users; set by targets_find().
 */
struct targets {
	pid_t *pids;
	unsigned int nr_pids;
	unsigned int max_pids;
	unsigned int given;
	pid_t tids[TARGETS_MAX];
	unsigned int nr_tids;
	const char *names[TARGETS_NAMES];
	unsigned int nr_names;
	bool alone;
	unsigned int refused;
};

void targets_deinit(struct targets *t);

/* Returns whether any process, thread or name was given. */
bool targets_any(const struct targets *t);

/* Returns the option that was used: "--pid", "--name" or "--tid". */
const char *targets_option(const struct targets *t);

/* Options that fill a struct targets, which is the parser's input. */
extern const struct argp targets_argp;

/*
 * Takes more process IDs from the place of the command, as in "-p $(pidof server)". Returns true if
 * all words are process IDs and were added.
 */
bool targets_take_words(struct targets *t, char *const *words);

/*
 * Finds processes by their names, and then the children of all processes. Returns 0, or an exit
 * status after printing the reason.
 */
int targets_find(struct targets *t);

/*
 * Writes why nothing was recorded, that is, what the first process or thread does now, as a part of
 * a sentence.
 */
void targets_describe(const struct targets *t, char *buf, size_t size);

#endif
