/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * known_names.h - names that outlive the store which found them.
 *
 * A recording that is written as many profiles, one after another, meets the same addresses again
 * and again, and each profile is written by a child process with a store of its own. Reading the
 * symbols and the debug information of the same files was more than half of what such a recording
 * cost. Here a child leaves what it found to those that come after it, in memory that all of them
 * share.
 *
 * Only files are remembered: each by device, inode number, size and times, so that a file that was
 * replaced is another file. At most one process at a time may use the memory.
 */
#ifndef SHSTK_SYMBOL_KNOWN_NAMES_H
#define SHSTK_SYMBOL_KNOWN_NAMES_H

#include <stdbool.h>
#include <stdint.h>

struct shstk_known_names;
struct shstk_pool;
struct shstk_resolved;

/**
 * struct shstk_known_file - what tells a file from all others
 * @dev: its device.
 * @inode: its inode number.
 * @size: its size in bytes.
 * @changed: time of its last change of any kind, in ns since 1970.
 */
struct shstk_known_file {
	uint64_t dev;
	uint64_t inode;
	uint64_t size;
	uint64_t changed;
};

/* Makes shared memory without names. Returns NULL if there is no memory. */
struct shstk_known_names *shstk_known_names_create(void);
void shstk_known_names_destroy(struct shstk_known_names *known);

/*
 * Says that this process may use the names from now on. What is older than an hour is forgotten:
 * debug information may have been installed meanwhile.
 */
void shstk_known_names_use(struct shstk_known_names *known);

/* Identifies an open file. Returns false if that is not possible, or the file is in memory only. */
bool shstk_known_file(int fd, struct shstk_known_file *ret);

/*
 * Finds the names of an address of a file. Returns them in memory of the pool; or NULL: they are not
 * known, this process may not use them, or memory runs out. @known may be NULL.
 */
const struct shstk_resolved *shstk_known_names_find(const struct shstk_known_names *known,
						    const struct shstk_known_file *file,
						    uint64_t addr, struct shstk_pool *pool);

/* Returns whether shstk_known_names_find() finds names. */
bool shstk_known_names_has(const struct shstk_known_names *known,
			   const struct shstk_known_file *file, uint64_t addr);

/* Remembers the names of an address. If there is no room, all names are forgotten. */
void shstk_known_names_add(struct shstk_known_names *known, const struct shstk_known_file *file,
			   uint64_t addr, const struct shstk_resolved *names);

#endif
