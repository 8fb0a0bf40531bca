/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * functions.h - where functions of some names begin in an ELF file.
 */
#ifndef TOOLS_ELF_FUNCTIONS_H
#define TOOLS_ELF_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

/**
 * functions_find() - look at all functions that a file defines
 * @fd: the file, of this machine's own kind. It is foreign: counts are bounded.
 * @fn: gets the name of each and its offset in the file, once for each name. Returns 0, or
 *	what ends it.
 * @arg: for @fn.
 *
 * By all its tables of symbols.
 *
 * Return: 0; what @fn returned; or -ENOEXEC: it is no such file.
 */
int functions_find(int fd, int (*fn)(void *arg, const char *name, uint64_t offset), void *arg);

#endif
