/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * living_files.h - finds the files that living processes have mapped, also in containers and
 * deleted ones. recorded_files.h does so for processes of a perf.data file.
 */
#ifndef TOOLS_CONVERT_LIVING_FILES_H
#define TOOLS_CONVERT_LIVING_FILES_H

#include "tools/convert/mappings.h"
#include "tools/proc/maps.h"

struct live;

/*
 * Makes the state, with no files. @symbols: the store whose limits apply to what is read of processes.
 * Returns NULL if there is no memory.
 */
struct live *live_create(struct shstk_symbols *symbols);

/* Has what is read of processes from now on draw from another store. */
void live_renew(struct live *live, struct shstk_symbols *symbols);

/* Closes all files and releases @live, which may be NULL. */
void live_destroy(struct live *live);

/* Converts a mapping to the form of struct mappings. Its path is that of @m. */
struct mappings_map live_map(const struct mapping *m);

/**
 * live_open() - open the file that a process has mapped
 * @symbols: the store whose limits apply to what is read of the process.
 * @pid: the process.
 * @map: the mapping.
 *
 * The file is the one that the process sees, also if another file has the same name here, or the
 * file was deleted.
 *
 * Return: a file descriptor, or a negative errno.
 */
int live_open(struct shstk_symbols *symbols, pid_t pid, const struct mappings_map *map);

/* Returns how files of mappings are found. It is valid as long as @live is. */
const struct mappings_files *live_files(struct live *live);

/*
 * Returns the size of the vdso that processes have, 0 if there is none, and writes its build id to
 * @id.
 */
uint64_t live_vdso(const struct live *live, struct build_id *id);

/**
 * live_read() - read what a process has mapped now
 * @symbols: the store whose limits apply to what is read of the process.
 * @mappings: the mappings of process @pid, as for mappings_add().
 * @pid: the process.
 * @fn: called with each mapping that was not known yet; returns 0 or -ENOMEM.
 * @arg: passed to @fn.
 *
 * Return: 0, -ENOMEM, or a negative errno of opening /proc/PID/maps.
 */
int live_read(struct shstk_symbols *symbols, struct mappings **mappings, pid_t pid,
	      int (*fn)(void *arg, pid_t pid, const struct mappings_map *map), void *arg);

#endif
