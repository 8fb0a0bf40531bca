/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* proc_maps.h - reads /proc/PID/maps. */
#ifndef SHSTK_SYMBOL_PROC_MAPS_H
#define SHSTK_SYMBOL_PROC_MAPS_H

#include <stdbool.h>
#include <sys/types.h>

struct shstk_symmap_info;

/*
 * Reads the next line of a maps text. Returns false at the end of the text. Lines that are no
 * mappings or not executable are passed over. @info->path points into @path, which has room for
 * PATH_MAX + 16 bytes.
 */
bool shstk_maps_next(const char **text, const char *end, struct shstk_symmap_info *info,
		     char *path);
/* Reads all of /proc/PID/maps into one malloc'd block. Returns its size or a negative errno. */
ssize_t shstk_maps_read(int pid, char **ret);

#endif
