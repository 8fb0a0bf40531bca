/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* debugfile.h - finds separate debug files. */
#ifndef SHSTK_SYMBOL_DEBUGFILE_H
#define SHSTK_SYMBOL_DEBUGFILE_H

#include <stddef.h>
#include <sys/types.h>

#include "elf_file.h"

struct shstk_root;

/**
 * struct shstk_debugplace - where the separate debug files of a file are looked for
 * @root: the root folder of a process that has the file mapped.
 * @owner: user ID of the file's owner.
 * @dirs: the debug folders, separated by colons.
 */
struct shstk_debugplace {
	const struct shstk_root *root;
	uid_t owner;
	const char *dirs;
};

/*
 * Opens the file with that build id below the debug folders, this process's own ones first. Returns
 * a descriptor or a negative errno.
 */
int shstk_debugfile_by_id(const struct shstk_debugplace *place, const void *build_id, size_t size);
/*
 * Opens the debug file of @elf, which lies at @path, by build id or by .gnu_debuglink. Returns a
 * descriptor or a negative errno.
 */
int shstk_debugfile_open(const struct shstk_debugplace *place, const char *path, Elf *elf);
/*
 * Returns the name of the debug file that .gnu_debuglink of @elf names, or NULL. A name made of a build
 * id is passed over: files of Debian's packages have one, and their debug files are mostly not installed.
 */
const char *shstk_debugfile_promised(Elf *elf);
/* Opens a file that the debug information names. Returns a descriptor or a negative errno. */
int shstk_debugfile_named(const struct shstk_debugplace *place, const char *path);
/*
 * Asks the servers of DEBUGINFOD_URLS for the debug file of @elf, which may take as long as they
 * and DEBUGINFOD_TIMEOUT let it. Returns a descriptor or a negative errno; -ENOENT: there are no
 * servers, or they do not have the file.
 */
int shstk_debugfile_fetch(Elf *elf);

#endif
