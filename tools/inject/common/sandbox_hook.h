/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sandbox_hook.h - recognizes that a program is about to forbid itself system calls.
 */
#ifndef INJECT_SANDBOX_HOOK_H
#define INJECT_SANDBOX_HOOK_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>

#include "sys.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_OFF 0
#endif

/* Looks up the functions that are hooked. */
void sandbox_resolve(void);

/*
 * Called when the program is about to install a seccomp filter (@filter), or gives up new
 * privileges, which mostly happens before that. @program is the program's pointer to the filter, a struct
 * sock_fprog; it may be bad. It is NULL if only a few calls are permitted. The object defines this.
 */
void sandbox_begins(bool filter, const void *program);

/*
 * Called when the program is about to forbid itself the time stamp counter. The object defines
 * this.
 */
void sandbox_without_tsc(void);

/*
 * Called when the calling thread is about to handle its system calls itself, as SIGSYS. Returns whether the
 * object knew of that before. The object defines this.
 */
bool sandbox_dispatches(void);

/*
 * Called when the thread does not handle its system calls itself any more, or could not begin to. The object
 * defines this.
 */
void sandbox_dispatch_ended(void);

/*
 * Returns whether the time stamp counter is forbidden, which may also be inherited from the program
 * that executed this one. Only x86 has this.
 */
static inline bool sandbox_tsc_faults(void)
{
	int how = PR_TSC_ENABLE;

	return !sys2(SYS_prctl, PR_GET_TSC, &how) && how == PR_TSC_SIGSEGV;
}

/*
 * Handles a call that installs a filter or, without @filter, permits a few calls only. Programs ask by a
 * filter at NULL whether there are filters of system calls: that is an error, and installs none.
 */
static inline void sandbox_on_seccomp(bool filter, unsigned long program)
{
	if (!filter || program)
		sandbox_begins(true, filter ? (const void *)program : NULL);
}

/* Handles a call of prctl() with these arguments. */
static inline void sandbox_on_prctl(int option, unsigned long arg, unsigned long program)
{
	if (option == PR_SET_TSC && arg == PR_TSC_SIGSEGV)
		sandbox_without_tsc();
	if (option == PR_SET_SECCOMP)
		sandbox_on_seccomp(arg == SECCOMP_MODE_FILTER, program);
	if (option == PR_SET_NO_NEW_PRIVS && arg)
		sandbox_begins(false, NULL);
}

#endif
