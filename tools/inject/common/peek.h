/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * peek.h - reads what a pointer of the program's points to, if it can be read.
 *
 * A system call with a bad pointer fails with EFAULT; a hook that reads through that pointer would
 * end the program instead. So hooks read with these functions, and pass a pointer that cannot be
 * read on to the call, which reports the error.
 */
#ifndef INJECT_PEEK_H
#define INJECT_PEEK_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#include "sys.h"

#define PEEK_PAGE 4096u /* no page is smaller */

/*
 * Returns whether the 8 bytes around @at can be read. The kernel reads a set of signals first, and
 * then finds that -1 is no operation. An emulator may not read the set: then the result is not
 * known, and true is returned.
 */
static inline bool can_peek(uintptr_t at)
{
	return sys4(SYS_rt_sigprocmask, -1, at & ~(uintptr_t)7, NULL, 8) != -EFAULT;
}

/*
 * Copies @n bytes, at most a page. Returns false if one of them cannot be read. If a filter of
 * system calls or an emulator prevents process_vm_readv(), each page is tested before it is read.
 */
static inline bool peek(void *to, const void *from, size_t n)
{
	struct iovec local = { to, n }, remote = { (void *)from, n };
	uintptr_t at = (uintptr_t)from;
	long ret;

	if (!n)
		return true;
	ret = sys6(SYS_process_vm_readv, sys0(SYS_getpid), (long)&local, 1, (long)&remote, 1, 0);
	if (ret >= 0 || ret == -EFAULT)
		return ret == (long)n;
	if (at + n < at || !can_peek(at) || !can_peek(at + n - 1))
		return false;
	memcpy(to, from, n);
	return true;
}

/*
 * Copies the pieces of memory that @from names to @to, one after the other, each at most a page: all
 * or nothing.
 */
static inline bool peek_pieces(void *to, const struct iovec *from, unsigned int nr)
{
	struct iovec all = { to, 0 };
	uint8_t *at = to;
	long ret;

	for (unsigned int i = 0; i < nr; i++)
		all.iov_len += from[i].iov_len;
	ret = sys6(SYS_process_vm_readv, sys0(SYS_getpid), (long)&all, 1, (long)from, nr, 0);
	if (ret >= 0 || ret == -EFAULT)
		return ret == (long)all.iov_len;
	/* A filter of system calls, or an emulator, prevents it. */
	for (unsigned int i = 0; i < nr; at += from[i++].iov_len)
		if (!peek(at, from[i].iov_base, from[i].iov_len))
			return false;
	return true;
}

static inline struct iovec peek_piece(uint64_t at, size_t size)
{
	return (struct iovec){ (void *)at, size };
}

/* Writes @n bytes, if all of them can be written and no filter of system calls prevents it. */
static inline bool poke(const void *to, const void *from, size_t n)
{
	struct iovec local = { (void *)from, n }, remote = { (void *)to, n };

	return sys6(SYS_process_vm_writev, sys0(SYS_getpid), (long)&local, 1, (long)&remote, 1,
		    0) == (long)n;
}

/*
 * Copies the start of a string, at most @size bytes. Returns how many bytes were copied, including
 * the zero at its end if it is among them, or -1 if one could not be read.
 */
static inline long peek_text(char *to, const char *from, size_t size)
{
	size_t used = 0;

	while (used < size) {
		size_t n = PEEK_PAGE - ((uintptr_t)from + used) % PEEK_PAGE;
		const char *end;

		n = n < size - used ? n : size - used;
		if (!peek(to + used, from + used, n))
			return -1;
		end = memchr(to + used, '\0', n);
		if (end)
			return end + 1 - to;
		used += n;
	}
	return used;
}

#endif
