/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * targets.h - what runs already and is to be recorded: processes by number or name, with
 * the children that they have, or threads.
 */
#ifndef TOOLS_RECORD_TARGETS_TARGETS_H
#define TOOLS_RECORD_TARGETS_TARGETS_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define TARGETS_MAX 4096 /* processes, and threads, of one recording */
#define TARGETS_NAMES 64

/**
 * struct targets - what runs already and is to be recorded
 * @pids: processes. targets_find() adds those that have one of @names, then children.
 * @nr_pids: so many.
 * @given: so many of them are no children of others; set by targets_find().
 * @tids: threads,
 * @nr_tids: so many.
 * @names: what processes are called,
 * @nr_names: so many.
 * @alone: their children are not wanted.
 * @refused: children that are other users'; set by targets_find().
 */
struct targets {
	pid_t pids[TARGETS_MAX];
	unsigned int nr_pids;
	unsigned int given;
	pid_t tids[TARGETS_MAX];
	unsigned int nr_tids;
	const char *names[TARGETS_NAMES];
	unsigned int nr_names;
	bool alone;
	unsigned int refused;
};

/* Is there anything in it? */
bool targets_any(const struct targets *t);

/* The option that said so: "--pid", "--name" or "--tid". */
const char *targets_option(const struct targets *t);

/* The options that fill a struct targets, which is its input. */
extern const struct argp targets_argp;

/*
 * What stands where a command does, behind -p PID, are more numbers: "-p $(pidof server)". True:
 * all of them are, and were taken.
 */
bool targets_take_words(struct targets *t, char *const *words);

/*
 * Find processes by their names, and the children that all have. Returns 0; or an exit status,
 * and it was said why.
 */
int targets_find(struct targets *t);

/* Why what was recorded used no time: what the first one does now, as a part of a sentence. */
void targets_describe(const struct targets *t, char *buf, size_t size);

#endif
