/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * loaded.h - has anything been loaded or unloaded?
 *
 * glibc's lock of the list of modules is not made anew in the child of a fork(): if another
 * thread had it, as when it threw an exception, whoever asks there waits for ever. So its words
 * are read, where they are known (libshstk/modmap.c). Other C libraries take care.
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

/* A number that differs once something has been, in the program's own namespace. */
static inline uint64_t loaded(void)
{
	uint64_t number = 0;

	if (!shstk_loads(&number))
		dl_iterate_phdr(loaded_counts, &number);
	return number;
}

#endif
