/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * golang.h - is a program made by Go?
 */
#ifndef TOOLS_ELF_GOLANG_H
#define TOOLS_ELF_GOLANG_H

enum golang_kind {
	GOLANG_NONE, /* not made by Go, or not to be read */
	GOLANG_ALONE, /* needs no libraries: its threads are not the C library's */
	GOLANG_WITH_C, /* needs libraries, as those with C in them do */
};

/* Was the program made by Go, and how? */
enum golang_kind golang_kind(int fd);

#endif
