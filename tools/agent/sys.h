/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sys.h - system calls without errno.
 *
 * The agent runs in signal handlers of threads it knows nothing about, some of
 * which may not have thread-local storage of their own: it must not touch
 * errno. Failures are returned as negative errno values.
 */
#ifndef AGENT_SYS_H
#define AGENT_SYS_H

#include <sys/syscall.h>

#if defined(__x86_64__)
static inline long sys6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8),
			   "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}
#elif defined(__aarch64__)
static inline long sys6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}
#else
#include <errno.h>
/* No such machine yet: the agent finds no memory and stays out of the way. */
static inline long sys6(long nr, long a, long b, long c, long d, long e, long f)
{
	(void)nr, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
	return -ENOSYS;
}
#endif

#define sys4(nr, a, b, c, d) \
	sys6(nr, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define sys3(nr, a, b, c) sys4(nr, a, b, c, 0)
#define sys2(nr, a, b) sys4(nr, a, b, 0, 0)
#define sys1(nr, a) sys4(nr, a, 0, 0, 0)
#define sys0(nr) sys4(nr, 0, 0, 0, 0)

#endif
