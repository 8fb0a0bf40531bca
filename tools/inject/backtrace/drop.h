/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * drop.h - private parts of libshstk-backtrace.so: calls of other libraries that
 * take stack traces, served by libshstk. A program, its profiler or its allocator
 * runs with it unchanged:
 *
 *	LD_PRELOAD=.../libshstk-backtrace.so PROGRAM
 *
 *   array.c   those that fill an array: backtrace() and the like
 *   walk.c    _Unwind_Backtrace(), which calls back for each frame
 *
 * The contract is that of the function that is replaced: the same frames in the
 * same order, return addresses as they are. Where libshstk can't follow a stack
 * to its end, the true function is asked, and its answer taken.
 */
#ifndef BACKTRACE_DROP_H
#define BACKTRACE_DROP_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hook.h"

#define HOOK_API __attribute__((visibility("default")))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Did the trace end where the stack does, or where the caller wanted it to? */
static inline bool is_whole(int n, unsigned int end)
{
	return n >= 0 && (end == SHSTK_END_COMPLETE || end == SHSTK_END_CAPACITY);
}

#endif
