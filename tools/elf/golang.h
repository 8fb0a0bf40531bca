/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * golang.h - is a program made by Go?
 */
#ifndef TOOLS_ELF_GOLANG_H
#define TOOLS_ELF_GOLANG_H

#include <stdbool.h>

/* Was the program made by Go, and does it need libraries, as those with C in them do? */
bool golang_calls_c(int fd);

#endif
