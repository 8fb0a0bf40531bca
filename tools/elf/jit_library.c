// SPDX-License-Identifier: GPL-2.0-or-later
/* jit_library.c - recognises libraries that make code at run time. See jit_library.h. */
#include <string.h>

#include "tools/elf/jit_library.h"

bool jit_is_known(const char *path)
{
	const char *name = strrchr(path, '/');

	return name && !strcmp(name, "/libjvm.so");
}
