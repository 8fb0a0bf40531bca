// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * small_machine.c - preloaded: a machine that has 8 MiB of memory, as sysconf(3) tells it.
 */
#include <dlfcn.h>
#include <unistd.h>

long sysconf(int name)
{
	long (*next)(int name) = (long (*)(int name))dlsym(RTLD_NEXT, "sysconf");

	return name == _SC_PHYS_PAGES ? (8 << 20) / next(_SC_PAGESIZE) : next(name);
}
