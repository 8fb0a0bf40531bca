// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * true_walks.c - an object for LD_PRELOAD, behind libshstk-backtrace.so, that counts the calls of
 * the real _Unwind_Backtrace() and _Unwind_FindEnclosingFunction(). It prints the counts on standard
 * error when the program ends.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unwind.h>

static unsigned long _Atomic walks, lookups;

/* Finds a function of the real unwinder, which may have been loaded late. */
static void *find(const char *name)
{
	void *fn = dlsym(RTLD_NEXT, name), *library;

	if (fn)
		return fn;
	library = dlopen("libgcc_s.so.1", RTLD_NOW);
	fn = library ? dlsym(library, name) : NULL;
	if (!fn)
		abort();
	return fn;
}

/* Calls the real function by a jump, so that it does not see this one. */
__attribute__((visibility("default"))) _Unwind_Reason_Code _Unwind_Backtrace(_Unwind_Trace_Fn trace,
									     void *arg)
{
	static _Unwind_Reason_Code (*next)(_Unwind_Trace_Fn, void *);

	walks++;
	if (!next)
		*(void **)&next = find("_Unwind_Backtrace");
	return next(trace, arg);
}

__attribute__((visibility("default"))) void *_Unwind_FindEnclosingFunction(void *pc)
{
	static void *(*next)(void *);

	lookups++;
	if (!next)
		*(void **)&next = find("_Unwind_FindEnclosingFunction");
	return next(pc);
}

__attribute__((destructor)) static void print_counts(void)
{
	fprintf(stderr, "%lu true walks, %lu true look-ups\n", walks, lookups);
}
