// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * start.c - switch shadow stacks on before main().
 *
 * __libc_start_main() never returns, and it is called by the first instructions
 * of the program: a shadow stack that begins in it, empty, misses nothing. The
 * dynamic linker and the constructors of the libraries (glibc 2.34 and newer:
 * not those of the program) have run by then, without a shadow stack.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "start.h"

#define ARCH_SHSTK_ENABLE	0x5001
#define ARCH_SHSTK_LOCK		0x5003
#define ARCH_SHSTK_SHSTK	1
#define ARCH_SHSTK_WRSS		2

bool start_is_glibc = true;
bool start_jumps_patched;
void (*start_real_longjmp)(void *env, int value);

int *__errno_location(void);

/* Tail of vfork(): sets errno. */
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

/* Early enough for constructors of other libraries that use these calls. */
__attribute__((constructor)) static void construct(void)
{
	if (!start_real_longjmp)
		resolve();
}

static __attribute__((always_inline)) inline long arch_prctl(long op, long arg)
{
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(SYS_arch_prctl), "D"(op), "S"(arg)
			 : "rcx", "r11", "memory");
	return ret;
}

static bool is_first(void)
{
	return sys0(SYS_getpid) ==
	       start_settings.first;
}

/* A program that must not run without: the one `shstk run` was asked for. */
static void give_up(const char *what, const char *why)
{
	bool end = !start_settings.permissive &&
		   (is_first() || start_settings.strict);

	if (end || is_first())
		start_say(what, why);
	if (end)
		sys1(SYS_exit_group, 125);
}

static const char *reason(long err)
{
	switch (err) {
	case -EOPNOTSUPP:
		return "this processor or kernel has none";
	case -EINVAL:
		return "this kernel does not know them";
	case -ENOMEM:
		return "no memory; a smaller stack limit (ulimit -s) may help";
	case -EPERM:
		return "not permitted (locked, or a seccomp filter)";
	default:
		return "arch_prctl() failed";
	}
}

typedef int (*start_fn)(int (*)(int, char **, char **), int, char **,
			void (*)(void), void (*)(void), void (*)(void), void *);

static void prepare(int argc, char **argv)
{
	const char *missed;

	resolve();
	start_read_settings(argv + argc + 1);
	missed = start_is_glibc ? start_patch() : NULL;
	if (missed && start_settings.strict)
		give_up("not started: unknown code in ", missed);
}

EXPORT int __libc_start_main(int (*main)(int, char **, char **), int argc,
			     char **argv, void (*init)(void),
			     void (*fini)(void), void (*rtld_fini)(void),
			     void *stack_end)
{
	start_fn real = (start_fn)dlsym(RTLD_NEXT, "__libc_start_main");
	long err;

	prepare(argc, argv);
	/* From here on, no return out of this frame. */
	err = arch_prctl(ARCH_SHSTK_ENABLE, ARCH_SHSTK_SHSTK);
	if (!err && start_settings.lock)
		err = arch_prctl(ARCH_SHSTK_LOCK,
				 start_settings.permissive ?
					 ARCH_SHSTK_SHSTK :
					 ARCH_SHSTK_SHSTK | ARCH_SHSTK_WRSS);
	if (err) {
		give_up("no shadow stack: ", reason(err));
	} else {
		start_faults();
		if (!start_settings.quiet && is_first())
			start_say("shadow stack on, by the start-up object",
				  start_settings.lock ? ", locked" : "");
		start_first_done();
	}
	real(main, argc, argv, init, fini, rtld_fini, stack_end);
	__builtin_trap();
}
