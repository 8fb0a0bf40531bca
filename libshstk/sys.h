/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sys.h - plain system calls that are no cancellation points and do not use errno.
 *
 * The C library's open(), read(), close() and so on are cancellation points: a thread with
 * a pending cancellation would die in them, even in a signal handler, wherever the program
 * was interrupted. They also set errno, and a handler may run in a thread that has no
 * thread-local storage of its own. So all code that a capture or an agent can reach makes
 * its system calls by these functions, which return failures as negative errno values. The
 * build refuses objects that call a cancellation point (libshstk/cancellation.points).
 */
#ifndef SHSTK_SYS_H
#define SHSTK_SYS_H

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
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
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
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
#elif defined(__riscv)
static inline long sys6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long a7 __asm__("a7") = nr;
	register long a0 __asm__("a0") = a;
	register long a1 __asm__("a1") = b;
	register long a2 __asm__("a2") = c;
	register long a3 __asm__("a3") = d;
	register long a4 __asm__("a4") = e;
	register long a5 __asm__("a5") = f;

	__asm__ volatile("ecall"
			 : "+r"(a0)
			 : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5)
			 : "memory");
	return a0;
}
#else
#error "no system calls for this architecture"
#endif

#define sys4(nr, a, b, c, d) sys6(nr, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define sys3(nr, a, b, c) sys4(nr, a, b, c, 0)
#define sys2(nr, a, b) sys4(nr, a, b, 0, 0)
#define sys1(nr, a) sys4(nr, a, 0, 0, 0)
#define sys0(nr) sys4(nr, 0, 0, 0, 0)

static inline int sys_open(const char *path, int flags)
{
	return (int)sys4(SYS_openat, AT_FDCWD, path, flags, 0);
}

static inline void sys_close(int fd)
{
	sys1(SYS_close, fd);
}

static inline long sys_read(int fd, void *buf, unsigned long size)
{
	return sys3(SYS_read, fd, buf, size);
}

static inline int sys_ioctl(int fd, unsigned long cmd, void *arg)
{
	return (int)sys3(SYS_ioctl, fd, cmd, arg);
}

/*
 * Checks whether the pages from @page on, @size bytes rounded up to whole pages, can be read.
 * Returns 0 if they can, or a negative errno.
 */
static inline int sys_populate_read(uint64_t page, uint64_t size)
{
	return (int)sys3(SYS_madvise, page, size, 22); /* MADV_POPULATE_READ */
}

/* Calls fstat(). On these architectures struct stat of the C libraries is the kernel's. */
static inline int sys_fstat(int fd, struct stat *st)
{
	return (int)sys2(SYS_fstat, fd, st);
}

#endif
