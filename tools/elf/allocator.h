/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * allocator.h - does a program have an allocator inside, which a preloaded library cannot replace?
 */
#ifndef TOOLS_ELF_ALLOCATOR_H
#define TOOLS_ELF_ALLOCATOR_H

/**
 * allocator_inside() - look for an allocator in an executable file
 * @path: the file. It is untrusted: counts are bounded, and the file is only read.
 *
 * The symbols decide. A stripped program counts as having an allocator if it imports none of the
 * functions that allocate, but one of the functions by which allocators manage their pages.
 *
 * Return: the name of the function that allocates, a static string; "malloc()" if the program is
 * stripped; NULL if there is no allocator or the file cannot be read.
 */
const char *allocator_inside(const char *path);

#endif
