/* SPDX-License-Identifier: GPL-2.0-or-later */
/* golang.h - was a program made by Go? */
#ifndef TOOLS_ELF_GOLANG_H
#define TOOLS_ELF_GOLANG_H

#include <stddef.h>

enum golang_kind {
	GOLANG_NONE, /* not made by Go, or not readable */
	GOLANG_ALONE, /* needs no libraries: its threads are not made by the C library */
	GOLANG_WITH_C, /* needs libraries: has C code in it */
};

/* Returns whether Go made the program that is open as @fd, and whether C is in it. */
enum golang_kind golang_kind(int fd);

/* Does the same for a program of @size bytes at @data, which may be anything. */
enum golang_kind golang_kind_of(const void *data, size_t size);

#endif
