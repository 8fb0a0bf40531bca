// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * start.c - enables shadow stacks before main().
 *
 * __libc_start_main() never returns, and the first instructions of the program call it: a shadow
 * stack that begins in it, empty, misses nothing. The dynamic linker and the constructors of the
 * libraries (with glibc 2.34 and newer, not those of the program) have run by then, without a
 * shadow stack.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "enable.h"
#include "start.h"

bool start_is_glibc = true;
bool start_jumps_patched;
void (*start_real_longjmp)(void *env, int value);

int *__errno_location(void);

/* Sets errno; the last step of vfork(). */
HIDDEN int start_fail(int err)
{
	*__errno_location() = err;
	return -1;
}

static void resolve(void)
{
	start_is_glibc = dlsym(RTLD_DEFAULT, "gnu_get_libc_version") != NULL;
	start_real_longjmp = dlsym(RTLD_NEXT, "siglongjmp");
	start_find_signals();
}

/* This runs early enough for constructors of other libraries that use these calls. */
__attribute__((constructor)) static void construct(void)
{
	if (!start_real_longjmp)
		resolve();
}

static void prepare(int argc, char **argv)
{
	const char *missed;

	resolve();
	start_read_settings(argv + argc + 1);
	missed = start_is_glibc ? start_patch() : NULL;
	if (missed && start_settings.strict)
		start_give_up("not started: unknown code in ", missed);
}

EXPORT int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv,
			     void (*init)(void), void (*fini)(void), void (*rtld_fini)(void),
			     void *stack_end)
{
	start_fn real = (start_fn)dlsym(RTLD_NEXT, "__libc_start_main");
	long err;

	prepare(argc, argv);
	/* From here on, this frame must not be returned from. */
	err = start_switch_on();
	start_switched(err);
	real(main, argc, argv, init, fini, rtld_fini, stack_end);
	__builtin_trap();
}
