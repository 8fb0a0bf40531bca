/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * path.h - programs found in PATH.
 */
#ifndef TOOLS_PROC_PATH_H
#define TOOLS_PROC_PATH_H

/**
 * find_program() - find a program as execvp(3) does
 * @name: name or path.
 * @ret: receives the path; free it.
 *
 * Return: 0, -ENOENT, -EACCES or -ENOMEM.
 */
int find_program(const char *name, char **ret);

/* What to say of @err of find_program(): a name without / is only looked for in PATH. */
const char *find_program_error(const char *name, int err);

#endif
