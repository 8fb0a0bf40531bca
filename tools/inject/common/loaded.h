/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * loaded.h - recognizes that modules have been loaded or unloaded.
 *
 * glibc does not renew its lock of the list of modules in the child of a fork(). If another thread
 * held the lock, as it does when it throws an exception, a call that takes it waits for ever. So
 * glibc's counters are read directly where their addresses are known (libshstk/modmap.c). Other C
 * libraries renew their locks.
 */
#ifndef INJECT_LOADED_H
#define INJECT_LOADED_H

#include <link.h>
#include <stdint.h>

#include "loads.h"

static inline int loaded_counts(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(uint64_t *)arg = info->dlpi_adds * 3 + info->dlpi_subs;
	return 1;
}

/*
 * Returns a number that differs once modules have been loaded or unloaded in the program's own
 * namespace.
 */
static inline uint64_t loaded(void)
{
	uint64_t number = 0;

	if (!shstk_loads(&number))
		dl_iterate_phdr(loaded_counts, &number);
	return number;
}

#endif
