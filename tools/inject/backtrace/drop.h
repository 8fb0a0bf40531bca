/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * drop.h - private declarations of libshstk-backtrace.so, which serves other libraries' calls that
 * take stack traces with libshstk. A program, its profiler or its allocator runs with it unchanged:
 *
 *	LD_PRELOAD=.../libshstk-backtrace.so PROGRAM
 *
 *   array.c   functions that fill an array: backtrace() and similar
 *   walk.c    _Unwind_Backtrace(), which calls back for each frame
 *
 * Each function keeps the contract of the function that it replaces: the same frames in the same
 * order, and unchanged return addresses. Where libshstk cannot follow a stack to its end, the real
 * function is called and its result returned.
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

/* Returns whether the trace ended where the stack does, or where the caller's array ends. */
static inline bool is_whole(int n, unsigned int end)
{
	return n >= 0 && (end == SHSTK_END_COMPLETE || end == SHSTK_END_CAPACITY);
}

#endif
