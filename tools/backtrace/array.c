// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * array.c - functions that fill an array with return addresses.
 *
 * - backtrace() of the C library.
 * - unw_backtrace() of libunwind.
 * - GetStackTrace() and GetStackTraceWithContext() of gperftools, and the first
 *   of Abseil as Debian's library has it.
 *
 * For all of them entry 0 is the return address into their caller. They may be
 * called from signal handlers, so the next functions are looked up at start.
 */
#include <execinfo.h>

#include "drop.h"

typedef int get_array(void **array, int size);
typedef int get_skipping(void **array, int size, int skip);

_Static_assert(sizeof(void *) == sizeof(uint64_t), "entries are addresses");

/*
 * Entry 0 is the return address of the hook that calls this, but for @skip.
 * Returns their number, or -1: the true function is to be asked.
 */
static __attribute__((noinline)) int capture(void **array, int size,
					     unsigned int skip)
{
	struct shstk_opts opts = { .size = sizeof(opts), .skip = skip + 2 };
	struct shstk_info info = { .size = sizeof(info) };
	int n = shstk_capture((uint64_t *)array, size, &opts, &info);

	return is_whole(n, &info) ? n : -1;
}

/*
 * The true functions are left to by tail calls: they see the stack as if nobody
 * stood in front of them.
 */
#define ARRAY(name)                                                            \
	static get_array *next_##name;                                         \
									       \
	__attribute__((constructor)) static void find_##name(void)             \
	{                                                                      \
		*(void **)&next_##name = dlsym(RTLD_NEXT, #name);              \
	}                                                                      \
									       \
	HOOK_API int name(void **array, int size);                             \
	HOOK_API int name(void **array, int size)                              \
	{                                                                      \
		int n;                                                         \
									       \
		if (size <= 0)                                                 \
			return 0;                                              \
		n = capture(array, size, 0);                                   \
		if (likely(n >= 0))                                            \
			return n;                                              \
		return next_##name ? next_##name(array, size) : 0;             \
	}

ARRAY(backtrace)
ARRAY(unw_backtrace)

#define SKIPPING(name)                                                         \
	static get_skipping *next_##name;                                      \
									       \
	__attribute__((constructor)) static void find_##name(void)             \
	{                                                                      \
		*(void **)&next_##name = dlsym(RTLD_NEXT, #name);              \
	}                                                                      \
									       \
	HOOK_API int name(void **array, int size, int skip);                   \
	HOOK_API int name(void **array, int size, int skip)                    \
	{                                                                      \
		int n = size > 0 && skip >= 0 ? capture(array, size, skip) :   \
						-1;                            \
									       \
		if (likely(n >= 0))                                            \
			return n;                                              \
		return next_##name ? next_##name(array, size, skip) : 0;       \
	}

/* GetStackTrace(void **, int, int), also in absl and absl::lts_20220623. */
SKIPPING(_Z13GetStackTracePPvii)
SKIPPING(_ZN4absl13GetStackTraceEPPvii)
SKIPPING(_ZN4absl12lts_2022062313GetStackTraceEPPvii)

/*
 * What a profiler calls in its signal handler. By default gperftools makes no use
 * of the context that it hands over: the frames are those of the handler itself.
 */
#define CONTEXT_NAME _Z24GetStackTraceWithContextPPviiPKv

static int (*next_context)(void **array, int size, int skip, const void *context);

__attribute__((constructor)) static void find_context(void)
{
	*(void **)&next_context = dlsym(RTLD_NEXT,
					"_Z24GetStackTraceWithContextPPviiPKv");
}

HOOK_API int CONTEXT_NAME(void **array, int size, int skip,
			  const void *context);
HOOK_API int CONTEXT_NAME(void **array, int size, int skip, const void *context)
{
	int n = size > 0 && skip >= 0 ? capture(array, size, skip) : -1;

	if (likely(n >= 0))
		return n;
	return next_context ? next_context(array, size, skip, context) : 0;
}
