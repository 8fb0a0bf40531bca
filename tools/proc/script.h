/* SPDX-License-Identifier: GPL-2.0-or-later */
/* script.h - tells which program runs a script. */
#ifndef TOOLS_PROC_SCRIPT_H
#define TOOLS_PROC_SCRIPT_H

#define SCRIPT_LEVELS 5 /* interpreters of interpreters that the kernel follows (fs/exec.c) */

/**
 * script_interpreter() - read which program runs a script
 * @fd: the file, open for reading.
 * @word: receives what env(1) would look for in PATH if the program is env(1), else NULL; the caller
 *	frees it.
 *
 * Return: the path in the line that begins with "#!", which the caller frees; NULL if there is no such
 * line, or no memory.
 */
char *script_interpreter(int fd, char **word);

/**
 * script_program() - find the program that runs what a command names
 * @name: name or path of a program or script, as execvp(3) takes it.
 * @ret: receives the path of the program without links; of a script, that of its interpreter, also if
 *	env(1) finds that. The caller frees it.
 *
 * Return: 0; an error of find_program(); -ELOOP if the kernel would not follow so many interpreters;
 * another negative errno if a file cannot be opened.
 */
int script_program(const char *name, char **ret);

#endif
