/* SPDX-License-Identifier: GPL-2.0-or-later */
/* functions.h - the functions that an ELF file defines, and their offsets in the file. */
#ifndef TOOLS_ELF_FUNCTIONS_H
#define TOOLS_ELF_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

/**
 * functions_find() - call a function for each function that a file defines
 * @fd: the file, of this machine's architecture. It is untrusted: counts are bounded.
 * @fn: gets the name of a function and its offset in the file, once for each name. Returns 0 to go
 *	on, or a value that ends the search.
 * @arg: first argument of @fn.
 *
 * All symbol tables of the file are read.
 *
 * Return: 0; the value of @fn that ended the search; or -ENOEXEC if the file is no ELF file of this
 * machine.
 */
int functions_find(int fd, int (*fn)(void *arg, const char *name, uint64_t offset), void *arg);

#endif
