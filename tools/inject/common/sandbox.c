// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sandbox.c - see sandbox.h. Part of both agents, that of time and that of allocations.
 *
 * What a program does without the C library, by instructions of its own, is not seen.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "sandbox.h"

#define HOOK_API __attribute__((visibility("default")))

static int (*next_prctl)(int option, unsigned long, unsigned long, unsigned long, unsigned long);

HOOK_API int prctl(int option, ...)
{
	unsigned long arg[4];
	va_list ap;

	va_start(ap, option);
	for (int i = 0; i < 4; i++)
		arg[i] = va_arg(ap, unsigned long);
	va_end(ap);
	sandbox_on_prctl(option, arg[0]);
	if (!next_prctl)
		*(void **)&next_prctl = dlsym(RTLD_NEXT, "prctl");
	return next_prctl(option, arg[0], arg[1], arg[2], arg[3]);
}

/*
 * syscall(), which makes the call of any number. It is left by a tail call, with the stack as it
 * was: the call may be one that returns in a child on another stack, or on the same one twice. On
 * x86-64 the last argument lies there, if there is one, and must not be touched: what is in its
 * place may be a variable that other threads change.
 */
#if defined(__x86_64__)
#define IN_REGISTERS(last)
#else
#define IN_REGISTERS(last) , last
#endif

static long (*next_syscall)(long nr, long, long, long, long, long IN_REGISTERS(long));

static void look_at(long nr, long a, long b)
{
	if (nr == SYS_prctl)
		sandbox_on_prctl(a, b);
	else if (nr == SYS_seccomp && a <= SECCOMP_SET_MODE_FILTER)
		sandbox_begins(true);
	if (!next_syscall)
		*(void **)&next_syscall = dlsym(RTLD_NEXT, "syscall");
}

HOOK_API long any_call(long nr, long a, long b, long c, long d,
		       long e IN_REGISTERS(long f)) __asm__("syscall");

long any_call(long nr, long a, long b, long c, long d, long e IN_REGISTERS(long f))
{
	if (nr == SYS_prctl || nr == SYS_seccomp || !next_syscall)
		look_at(nr, a, b);
	return next_syscall(nr, a, b, c, d, e IN_REGISTERS(f));
}

void sandbox_resolve(void)
{
	*(void **)&next_prctl = dlsym(RTLD_NEXT, "prctl");
	*(void **)&next_syscall = dlsym(RTLD_NEXT, "syscall");
}
