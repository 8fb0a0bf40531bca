/* SPDX-License-Identifier: GPL-2.0-or-later */
/* jit_library.h - recognises libraries that make code at run time. */
#ifndef TOOLS_ELF_JIT_LIBRARY_H
#define TOOLS_ELF_JIT_LIBRARY_H

#include <stdbool.h>

/* Returns true if @path is a library that makes code of a known kind (libjvm.so). */
bool jit_is_known(const char *path);

#endif
