/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * path.h - finds programs in PATH.
 */
#ifndef TOOLS_PROC_PATH_H
#define TOOLS_PROC_PATH_H

#include <string.h>

/* Returns the name of a file, which is behind the last slash of its path. */
static inline const char *path_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/**
 * find_program() - find a program as execvp(3) does
 * @name: name or path.
 * @ret: receives the path, which the caller frees.
 *
 * Return: 0, -ENOENT, -EACCES or -ENOMEM.
 */
int find_program(const char *name, char **ret);

/*
 * Returns the text for error @err of find_program(). A name without a slash is looked for only in
 * PATH.
 */
const char *find_program_error(const char *name, int err);

#endif
