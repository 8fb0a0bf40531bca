// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rawcall.c - the hook of syscall() (rawcall.h). Part of both agents, that of time and that of
 * allocations.
 *
 * System calls that a program makes with instructions of its own are not seen.
 */
#include <dlfcn.h>
#include <errno.h>
#include <sys/syscall.h>

#include "env.h"
#include "rawcall.h"
#include "sandbox_hook.h"

#define HOOK_API __attribute__((visibility("default")))

/*
 * The hook of syscall() is left by a tail call with the stack as it was, because the call may
 * return in a child on another stack, or twice on the same one. On x86-64 the last argument, if
 * there is one, is on the stack. It must not be touched: if there is none, its place may be a
 * variable that other threads change.
 */
#if defined(__x86_64__)
#define IN_REGISTERS(last)
#else
#define IN_REGISTERS(last) , last
#endif

static long (*next_syscall)(long nr, long, long, long, long, long IN_REGISTERS(long));

void rawcall_resolve(void)
{
	*(void **)&next_syscall = dlsym(RTLD_NEXT, "syscall");
}

static void note_call(long nr, long a, long b, long c)
{
	if (nr == SYS_prctl)
		sandbox_on_prctl(a, b, c);
	else if (nr == SYS_seccomp && a <= SECCOMP_SET_MODE_FILTER)
		sandbox_on_seccomp(a == SECCOMP_SET_MODE_FILTER, c);
	else if (nr == SYS_clone)
		rawcall_on_clone(a);
	if (!next_syscall)
		rawcall_resolve();
}

static __attribute__((noinline)) long change_action(long signo, long act, long old, long size)
{
	long ret;

	if (!rawcall_on_action(signo, (const void *)act, (void *)old, size, &ret))
		return next_syscall(SYS_rt_sigaction, signo, act, old, size, 0 IN_REGISTERS(0));
	if (ret >= 0)
		return ret;
	errno = (int)-ret;
	return -1;
}

HOOK_API long any_call(long nr, long a, long b, long c, long d,
		       long e IN_REGISTERS(long f)) __asm__("syscall");

long any_call(long nr, long a, long b, long c, long d, long e IN_REGISTERS(long f))
{
	if (nr == SYS_prctl && a == PR_SET_SYSCALL_USER_DISPATCH)
		return prctl(a, b, c, d, e);
	if (nr == SYS_prctl || nr == SYS_seccomp || nr == SYS_clone || !next_syscall)
		note_call(nr, a, b, c);
	if (nr == SYS_rt_sigaction)
		return change_action(a, b, c, d);
	if (nr == SYS_execve)
		return env_execute(a, b, c);
	if (nr == SYS_execveat)
		return env_execute_at(a, b, c, d, e);
	return next_syscall(nr, a, b, c, d, e IN_REGISTERS(f));
}
