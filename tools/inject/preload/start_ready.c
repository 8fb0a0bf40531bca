// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * start_ready.c - the preloaded object of `shstk run` where the C library handles shadow stacks:
 * glibc on arm64, and on x86 if it was built for CET. It reports and repairs violations, and says
 * whether shadow stacks are enabled, as the C library may not have done what the command told it.
 *
 * The C library enables shadow stacks as tunables tell it; on x86 only for programs that are
 * marked. For others this object enables them, and tells the C library: its setjmp(), its contexts
 * and its threads look at a word of the thread control block.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>

#include "start.h"

bool start_bounds(uint64_t addr, uint64_t *lo, uint64_t *hi)
{
	struct map_line line;

	if (!start_map_find(addr, &line))
		return false;
	*lo = line.start;
	*hi = line.end;
	return true;
}

/* Returns whether the C library is glibc, which passes the arguments to constructors. */
static bool is_glibc(void)
{
	return dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
}

/*
 * Completes the start when the C library has enabled shadow stacks, which it does before any
 * constructor.
 */
static void switched_by_libc(void)
{
	start_faults();
	if (start_settings.say && !start_settings.quiet && start_is_first())
		start_say(start_settings.say, "");
	start_first_done();
}

__attribute__((constructor)) static void construct(int argc, char **argv, char **envp)
{
	(void)argc;
	(void)argv;
	start_find_signals();
	if (!is_glibc())
		return;
	start_read_settings(envp);
	if (read_ssp())
		switched_by_libc();
#ifdef __aarch64__
	else /* on x86 __libc_start_main() can still enable it */
		start_give_up("no shadow stack: ", "the C library left it off");
#endif
}

#ifdef __x86_64__
#include "enable.h"

/* Sets GNU_PROPERTY_X86_FEATURE_1_SHSTK in the feature word of the TCB, whose place is ABI. */
static void set_libc_feature(void)
{
	__asm__ volatile("orl $2, %%fs:0x48" : : : "memory");
}

/*
 * Returns whether the C library handles shadow stacks: its setjmp() reads the SSP (RDSSPQ). Child
 * processes may use another C library.
 */
static bool libc_handles(void)
{
	const unsigned char *p = dlsym(RTLD_NEXT, "__sigsetjmp");

	for (unsigned int i = 0; p && i < 128; i++)
		if (p[i] == 0xf3 && p[i + 1] == 0x48 && p[i + 2] == 0x0f && p[i + 3] == 0x1e)
			return true;
	return false;
}

EXPORT int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv,
			     void (*init)(void), void (*fini)(void), void (*rtld_fini)(void),
			     void *stack_end)
{
	start_fn real = (start_fn)dlsym(RTLD_NEXT, "__libc_start_main");
	long err;

	if (!is_glibc())
		start_read_settings(argv + argc + 1);
	if (!read_ssp() && !libc_handles()) {
		start_give_up("no shadow stack: ", "this C library does not handle them");
	} else if (!read_ssp() && start_settings.strict) {
		start_give_up("not started: ", "the program is not marked");
	} else if (!read_ssp()) {
		/* From here on, this frame must not be returned from. */
		err = start_switch_on();
		if (!err)
			set_libc_feature();
		start_switched(err);
	}
	real(main, argc, argv, init, fini, rtld_fini, stack_end);
	__builtin_trap();
}
#endif
