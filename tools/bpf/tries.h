/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tries.h - remembers files whose table could not be made for a reason that may pass: too little memory,
 * or a worker that a busy machine did not let finish. They are tried again, each time after twice as long.
 */
#ifndef TOOLS_BPF_TRIES_H
#define TOOLS_BPF_TRIES_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/walk.h"

#define TRIES_FILES 256 /* files that are remembered */
#define TRIES_FIRST 60000000000ull /* ns until a file is tried again for the first time */
#define TRIES_LONGEST (TRIES_FIRST << 10) /* ns that no file is left alone longer than */

/**
 * struct tried - a file whose table could not be made
 * @file: the file.
 * @user: for whom it was tried; it belongs to the caller.
 * @nr: how many times it was tried; 0: the place is free.
 * @again: when it is tried again, by CLOCK_MONOTONIC in ns; UINT64_MAX: it may be tried now.
 */
struct tried {
	struct walk_file file;
	void *user;
	unsigned int nr;
	uint64_t again;
};

/**
 * struct tries - such files; all bytes are 0 at the beginning
 * @files: the files.
 */
struct tries {
	struct tried files[TRIES_FILES];
};

/*
 * Notes that a file was tried in vain. If there is no place, the one of a file that nobody tried again
 * is taken, else that of the file whose time would come last, which is then left alone for ever.
 */
void tries_failed(struct tries *t, const struct walk_file *file, void *user, uint64_t now);

/* Notes that a file needs no further try: it has a table, or can never have one. */
void tries_done(struct tries *t, const struct walk_file *file);

/* Takes a file that may be tried again now. Returns NULL if there is none. */
const struct tried *tries_take(struct tries *t, uint64_t now);

/* Returns how long it takes until tries_take() has a file, in ms; -1 if nothing is to come. */
int tries_wait(const struct tries *t, uint64_t now);

#endif
