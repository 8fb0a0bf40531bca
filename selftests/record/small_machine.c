// SPDX-License-Identifier: GPL-2.0-or-later
/* small_machine.c - a preloaded library that makes sysconf(3) tell of 8 MiB of memory. */
#include <dlfcn.h>
#include <unistd.h>

long sysconf(int name)
{
	long (*next)(int name) = (long (*)(int name))dlsym(RTLD_NEXT, "sysconf");

	return name == _SC_PHYS_PAGES ? (8 << 20) / next(_SC_PAGESIZE) : next(name);
}
