/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * limits.h - recognizes that the program limits its address space or locks its memory, which has no
 * room for what an agent has reserved.
 */
#ifndef INJECT_LIMITS_H
#define INJECT_LIMITS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "sys.h"

/* Returns this process's limit of @resource; without one, the largest number. */
static inline uint64_t soft_limit(int resource)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	sys4(SYS_prlimit64, 0, resource, NULL, &limit);
	return limit.rlim_cur;
}

/* Looks up the functions that are hooked. */
void limits_resolve(void);

/*
 * Called when process @pid (0: the caller) has a new limit of its address space. The object defines
 * this and the next function.
 */
void limits_changed(pid_t pid);
/* Called when all mapped memory is about to be locked. */
void limits_before_lock(void);

#endif
