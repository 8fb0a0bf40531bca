/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * limits.h - the program limits its addresses, or locks its memory: what an agent has reserved
 * there is more than either has room for.
 */
#ifndef INJECT_LIMITS_H
#define INJECT_LIMITS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "sys.h"

/* The limit of @resource that this process has; none is the largest number. */
static inline uint64_t own_limit(int resource)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	sys4(SYS_prlimit64, 0, resource, NULL, &limit);
	return limit.rlim_cur;
}

/* Finds the functions that the hooks stand in front of. */
void limits_resolve(void);

/*
 * The object provides these. Process @pid, 0: the caller, has got another limit of addresses; all
 * that is mapped is about to be locked into memory.
 */
void limits_changed(pid_t pid);
void limits_before_lock(void);

#endif
