/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * live.h - the files that living processes have mapped: in containers, and deleted ones.
 */
#ifndef TOOLS_CONVERT_LIVE_H
#define TOOLS_CONVERT_LIVE_H

#include "tools/convert/layout.h"
#include "tools/proc/maps.h"

struct live;

/* Begins with no files. NULL when memory runs out. */
struct live *live_create(void);

/* Closes all files. @live may be NULL. */
void live_destroy(struct live *live);

/* A mapping as layouts have it; its path is that of @m. */
struct layout_map live_map(const struct mapping *m);

/**
 * live_open() - open the file that a process has mapped
 * @live: what is known of files, or NULL.
 * @pid: the process.
 * @map: the mapping.
 *
 * In its own view, if another one has the same name here; also when it was deleted.
 *
 * Return: a descriptor, or a negative errno.
 */
int live_open(struct live *live, pid_t pid, const struct layout_map *map);

/* How layouts find files; valid as long as @live is. */
const struct layout_files *live_files(struct live *live);

/* The vdso that processes have: returns its size, 0 if there is none; @id receives its build id. */
uint64_t live_vdso(const struct live *live, struct build_id *id);

/**
 * live_read() - what a process has mapped now
 * @layout: the layout of process @pid, as for layout_add().
 * @pid: the process.
 * @fn: gets what was not there yet, returns 0 or -ENOMEM.
 * @arg: for @fn.
 *
 * Return: 0, -ENOMEM, or a negative errno of /proc/PID/maps.
 */
int live_read(struct layout **layout, pid_t pid,
	      int (*fn)(void *arg, pid_t pid, const struct layout_map *map), void *arg);

#endif
