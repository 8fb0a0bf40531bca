// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * jemalloc.c - stacks for jemalloc's heap profiler, by libshstk.
 *
 *   cc -O2 -o PROGRAM PROGRAM.c jemalloc.c -ljemalloc $(pkg-config --cflags --libs libshstk)
 *   MALLOC_CONF=prof:true ./PROGRAM
 *
 * PROGRAM.c calls the function below once, early in main(). It needs jemalloc 5.3 or later, built
 * with --enable-prof, as Debian's is.
 */
#include <jemalloc/jemalloc.h>
#include <shstk.h>
#include <string.h>

/* jemalloc 5.3 asks for 128 entries. Later ones have an option for it; more than 256 are cut. */
#define ROOM 257

/* What jemalloc calls to fill @pcs, which has room for @max entries, and to set @n. */
typedef void backtrace_hook(void **pcs, unsigned int *n, unsigned int max);

static backtrace_hook *unwinder_of_jemalloc;

int shstk_hook_jemalloc(void);

static void capture(void **pcs, unsigned int *n, unsigned int max)
{
	struct shstk_info info = { .size = sizeof(info) };
	unsigned int room = max < ROOM ? max + 1 : ROOM;
	uint64_t all[ROOM];
	int got = shstk_capture(all, room, NULL, &info);

	if (got < 1 || (info.end != SHSTK_END_COMPLETE && info.end != SHSTK_END_CAPACITY)) {
		unwinder_of_jemalloc(pcs, n, max);
		return;
	}
	/* Entry 0 lies in this function, so it is left out. */
	memcpy(pcs, all + 1, (got - 1) * sizeof(*pcs));
	*n = got - 1;
}

/*
 * From now on jemalloc takes its stacks by libshstk. Returns 0; ENOENT: profiling is off, or this
 * jemalloc has no hook; or another error of mallctl().
 */
int shstk_hook_jemalloc(void)
{
	size_t size = sizeof(unwinder_of_jemalloc);
	backtrace_hook *hook = capture;

	return mallctl("experimental.hooks.prof_backtrace", &unwinder_of_jemalloc, &size, &hook,
		       sizeof(hook));
}
