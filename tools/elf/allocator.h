/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * allocator.h - is there an allocator inside a program, where no preloaded object
 * can stand in front of it?
 */
#ifndef TOOLS_ELF_ALLOCATOR_H
#define TOOLS_ELF_ALLOCATOR_H

/**
 * allocator_inside() - look for one in an executable file
 * @path: the file. It is foreign: counts are bounded, it is only read.
 *
 * By its symbols. A stripped program has one if it imports none of the functions that
 * allocate, but one of those that allocators manage pages with.
 *
 * Return: the name of the function that allocates, a static string; "malloc()" if
 * the program is stripped; NULL: there is none, or the file can't be read.
 */
const char *allocator_inside(const char *path);

#endif
