// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * both.c - is preloaded into perf so that samples with a copy of the stack have the kernel's user
 * callchain, too
 *
 * perf record --call-graph dwarf asks the kernel to leave that callchain out, because perf unwinds
 * the copy. Here both are wanted, to compare them. Nothing else is changed.
 */
#include <dlfcn.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>

typedef long call_fn(long nr, long a, long b, long c, long d, long e, long f);

long syscall(long nr, long a, long b, long c, long d, long e, long f);

long syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	static call_fn *next;

	if (!next)
		next = (call_fn *)dlsym(RTLD_NEXT, "syscall");
	if (nr == SYS_perf_event_open) {
		struct perf_event_attr *attr = (void *)a;

		if (attr->sample_type & PERF_SAMPLE_STACK_USER)
			attr->exclude_callchain_user = 0;
	}
	return next(nr, a, b, c, d, e, f);
}
