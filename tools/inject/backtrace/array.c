// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * array.c - functions that fill an array with return addresses:
 *
 * - backtrace() of the C library.
 * - unw_backtrace() of libunwind.
 * - GetStackTrace() and GetStackTraceWithContext() of gperftools, and the first of these in Abseil,
 *   by the names that its own release and Debian 12 give it.
 *
 * For all of them entry 0 is the return address into their caller. They may be called from signal
 * handlers, so the next functions are looked up at start.
 */
#include <execinfo.h>
#include <string.h>

#include "drop.h"

typedef int get_array(void **array, int size);
typedef int get_skipping(void **array, int size, int skip);

_Static_assert(sizeof(void *) == sizeof(uint64_t), "entries are addresses");

#define ROOM 128 /* entries, including those to be left out */

/*
 * Captures all entries in a fast way, and then leaves out the first @skip. Returns their number or
 * a negative errno.
 */
static __attribute__((noinline)) int capture_inner(struct shstk_hook *hook, uint64_t *array,
						   unsigned int size, unsigned int skip)
{
	uint64_t pcs[ROOM];
	int n = shstk_hook_capture(hook, pcs, size + skip, NULL);

	if (n < 0)
		return n;
	n = (unsigned int)n > skip ? n - skip : 0;
	memcpy(array, pcs + skip, n * sizeof(*pcs));
	return n;
}

/*
 * Captures the stack of the hook's caller, which @ra, @sp and @fp describe. Entry 0 is the hook's
 * return address unless @skip entries are left out. Returns the number of entries, or -1 if the
 * real function has to be called.
 */
static __attribute__((noinline)) int capture(void **array, int size, unsigned int skip, uint64_t ra,
					     uint64_t sp, uint64_t fp)
{
	struct shstk_opts opts = { .size = sizeof(opts), .skip = skip };
	struct shstk_hook hook = { .ra = ra, .sp = sp, .fp = fp };
	uint64_t *pcs = (uint64_t *)array;
	int n;

	if (skip && skip < ROOM && (unsigned int)size <= ROOM - skip)
		n = capture_inner(&hook, pcs, size, skip);
	else
		n = shstk_hook_capture(&hook, pcs, size, &opts);
	return is_whole(n, hook.end) ? n : -1;
}

#define CAPTURE(array, size, skip) \
	capture(array, size, skip, SHSTK_HOOK_HERE.ra, SHSTK_HOOK_HERE.sp, SHSTK_HOOK_HERE.fp)

/*
 * The real functions are called by tail calls, so that they see the stack as if there were no hook.
 */
#define ARRAY(name)                                                \
	static get_array *next_##name;                             \
                                                                   \
	__attribute__((constructor)) static void find_##name(void) \
	{                                                          \
		*(void **)&next_##name = dlsym(RTLD_NEXT, #name);  \
	}                                                          \
                                                                   \
	HOOK_API int name(void **array, int size);                 \
	HOOK_API int name(void **array, int size)                  \
	{                                                          \
		int n;                                             \
                                                                   \
		if (size <= 0)                                     \
			return 0;                                  \
		n = CAPTURE(array, size, 0);                       \
		if (likely(n >= 0))                                \
			return n;                                  \
		return next_##name ? next_##name(array, size) : 0; \
	}

ARRAY(backtrace)
ARRAY(unw_backtrace)

#define SKIPPING(name)                                                           \
	static get_skipping *next_##name;                                        \
                                                                                 \
	__attribute__((constructor)) static void find_##name(void)               \
	{                                                                        \
		*(void **)&next_##name = dlsym(RTLD_NEXT, #name);                \
	}                                                                        \
                                                                                 \
	HOOK_API int name(void **array, int size, int skip);                     \
	HOOK_API int name(void **array, int size, int skip)                      \
	{                                                                        \
		int n = size > 0 && skip >= 0 ? CAPTURE(array, size, skip) : -1; \
                                                                                 \
		if (likely(n >= 0))                                              \
			return n;                                                \
		return next_##name ? next_##name(array, size, skip) : 0;         \
	}

/*
 * GetStackTrace(void **, int, int), in no namespace, in absl, and in the inline namespaces of the
 * versions that Debian 12, 13 and 14 have: as they are published, and as Debian builds them.
 */
SKIPPING(_Z13GetStackTracePPvii)
SKIPPING(_ZN4absl13GetStackTraceEPPvii)
SKIPPING(_ZN4absl12lts_2022062313GetStackTraceEPPvii)
SKIPPING(_ZN4absl12lts_2024072213GetStackTraceEPPvii)
SKIPPING(_ZN4absl12lts_2026052613GetStackTraceEPPvii)
SKIPPING(_ZN4absl7debian313GetStackTraceEPPvii)
SKIPPING(_ZN4absl7debian713GetStackTraceEPPvii)
SKIPPING(_ZN4absl8debian1013GetStackTraceEPPvii)

/*
 * A profiler calls this in its signal handler. By default gperftools does not use the context that
 * it passes: the frames are those of the handler itself.
 */
#define CONTEXT_NAME _Z24GetStackTraceWithContextPPviiPKv

static int (*next_context)(void **array, int size, int skip, const void *context);

__attribute__((constructor)) static void find_context(void)
{
	*(void **)&next_context = dlsym(RTLD_NEXT, "_Z24GetStackTraceWithContextPPviiPKv");
}

HOOK_API int CONTEXT_NAME(void **array, int size, int skip, const void *context);
HOOK_API int CONTEXT_NAME(void **array, int size, int skip, const void *context)
{
	int n = size > 0 && skip >= 0 ? CAPTURE(array, size, skip) : -1;

	if (likely(n >= 0))
		return n;
	return next_context ? next_context(array, size, skip, context) : 0;
}
