// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * true_walks.c - an object for LD_PRELOAD, behind libshstk-backtrace.so, that counts the calls of
 * the real _Unwind_Backtrace(). It prints the count on standard error when the program ends.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unwind.h>

static _Unwind_Reason_Code (*next)(_Unwind_Trace_Fn, void *);
static unsigned long _Atomic count;

static void find_next(void)
{
	void *library;

	*(void **)&next = dlsym(RTLD_NEXT, "_Unwind_Backtrace");
	if (next)
		return;
	library = dlopen("libgcc_s.so.1", RTLD_NOW);
	*(void **)&next = library ? dlsym(library, "_Unwind_Backtrace") : NULL;
	if (!next)
		abort();
}

/* Calls the real function by a jump, so that it does not see this one. */
__attribute__((visibility("default"))) _Unwind_Reason_Code _Unwind_Backtrace(_Unwind_Trace_Fn trace,
									     void *arg)
{
	count++;
	if (!next)
		find_next();
	return next(trace, arg);
}

__attribute__((destructor)) static void print_count(void)
{
	fprintf(stderr, "%lu true walks\n", count);
}
