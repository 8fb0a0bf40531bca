// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * limits.c - hooks of setrlimit() and mlockall() (limits.h). Part of both agents, that of time and
 * that of allocations.
 */
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "limits.h"

#define HOOK_API __attribute__((visibility("default")))

static int (*next_prlimit)(pid_t, int, const void *, void *);
static int (*next_mlockall)(int);

void limits_resolve(void)
{
	*(void **)&next_prlimit = dlsym(RTLD_NEXT, "prlimit");
	*(void **)&next_mlockall = dlsym(RTLD_NEXT, "mlockall");
}

/* A hook may be called before the agent's constructor has run. */
#define NEXT(name) (next_##name ? next_##name : (limits_resolve(), next_##name))

HOOK_API int prlimit64(pid_t pid, __rlimit_resource_t resource, const struct rlimit64 *limit,
		       struct rlimit64 *old)
{
	int ret = NEXT(prlimit)(pid, resource, limit, old);

	if (!ret && limit && resource == RLIMIT_AS)
		limits_changed(pid);
	return ret;
}

HOOK_API int prlimit(pid_t pid, __rlimit_resource_t resource, const struct rlimit *limit,
		     struct rlimit *old)
{
	return prlimit64(pid, resource, (const struct rlimit64 *)limit, (struct rlimit64 *)old);
}

HOOK_API int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
	return prlimit64(0, resource, (const struct rlimit64 *)limit, NULL);
}

HOOK_API int setrlimit64(__rlimit_resource_t resource, const struct rlimit64 *limit)
{
	return prlimit64(0, resource, limit, NULL);
}

HOOK_API int mlockall(int flags)
{
	if (flags & MCL_CURRENT)
		limits_before_lock();
	return NEXT(mlockall)(flags);
}
