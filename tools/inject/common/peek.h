/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * peek.h - reads what a pointer of the program's points to, if it can be read.
 *
 * A system call with a bad pointer fails with EFAULT; a hook that reads through that pointer
 * would end the program instead. So hooks read by these, and leave a pointer that can't be
 * read to the call, whose error it is.
 */
#ifndef INJECT_PEEK_H
#define INJECT_PEEK_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#include "sys.h"

#define PEEK_PAGE 4096u /* no page is smaller */

/*
 * Can the 8 bytes around @at be read? The kernel reads a set of signals first, then finds that
 * it knows no such operation. An emulator may not look: then it is not known, which is a yes.
 */
static inline bool can_peek(uintptr_t at)
{
	return sys4(SYS_rt_sigprocmask, -1, at & ~(uintptr_t)7, NULL, 8) != -EFAULT;
}

/*
 * @n bytes, at most a page. Returns false if one of them can't be read. Where a filter of system
 * calls, or an emulator, knows no better way, each page is asked for first.
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
 * The start of a string, as far as @size bytes go. Returns how many bytes of it were read, the
 * zero at its end included, if that is among them; -1: one could not be read.
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
