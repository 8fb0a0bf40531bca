/* SPDX-License-Identifier: GPL-2.0-or-later */
/* search.h - find a library where the dynamic linker would find it. */
#ifndef TOOLS_ELF_SEARCH_H
#define TOOLS_ELF_SEARCH_H

#include "tools/elf/objects.h"

/**
 * search_library() - find a library and add it to the set
 * @set: the objects; the first one is the program.
 * @name: a DT_NEEDED entry.
 * @parent: index of the object that has it.
 *
 * Return: 1 if it is (now) in the set, or is the interpreter, which objects_load() adds later; 0 if
 * it is not found; or a negative errno.
 */
int search_library(struct objects *set, const char *name, size_t parent);

#endif
