// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * start_arm64.c - the preloaded object of `shstk run` on arm64. The C library
 * switches shadow stacks on and handles jumps by itself there; the object only
 * reports and repairs violations.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>

#include "start.h"

bool start_bounds(uint64_t addr, uint64_t *lo, uint64_t *hi)
{
	struct map_line line;

	if (!start_map_find(addr, &line))
		return false;
	*lo = line.start;
	*hi = line.end;
	return true;
}

/* glibc hands these to constructors. */
__attribute__((constructor)) static void construct(int argc, char **argv,
						   char **envp)
{
	(void)argc;
	(void)argv;
	start_find_signals();
	start_read_settings(envp);
	if (read_ssp())
		start_faults();
}
