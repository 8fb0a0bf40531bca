// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sandbox_hook.c - the hook of prctl() (sandbox_hook.h). Part of both agents, that of time and that
 * of allocations. rawcall.c handles prctl() by its number.
 */
#include <dlfcn.h>
#include <stdarg.h>

#include "sandbox_hook.h"

#define HOOK_API __attribute__((visibility("default")))

static int (*next_prctl)(int option, unsigned long, unsigned long, unsigned long, unsigned long);

/* The thread makes system calls of its own only where the kernel does them: before this begins, and after. */
static int change_dispatch(const unsigned long arg[4])
{
	bool begins = arg[0] != PR_SYS_DISPATCH_OFF;
	bool stays = begins && sandbox_dispatches();
	int ret = next_prctl(PR_SET_SYSCALL_USER_DISPATCH, arg[0], arg[1], arg[2], arg[3]);

	if (begins ? ret && !stays : !ret)
		sandbox_dispatch_ended();
	return ret;
}

HOOK_API int prctl(int option, ...)
{
	unsigned long arg[4];
	va_list ap;

	va_start(ap, option);
	for (int i = 0; i < 4; i++)
		arg[i] = va_arg(ap, unsigned long);
	va_end(ap);
	sandbox_on_prctl(option, arg[0], arg[1]);
	if (!next_prctl)
		*(void **)&next_prctl = dlsym(RTLD_NEXT, "prctl");
	if (option == PR_SET_SYSCALL_USER_DISPATCH)
		return change_dispatch(arg);
	return next_prctl(option, arg[0], arg[1], arg[2], arg[3]);
}

void sandbox_resolve(void)
{
	*(void **)&next_prctl = dlsym(RTLD_NEXT, "prctl");
}
