/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sandbox.h - the signs that a program is about to forbid itself system calls.
 */
#ifndef INJECT_SANDBOX_H
#define INJECT_SANDBOX_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>

#include "sys.h"

/* Finds the functions that the hooks stand in front of. */
void sandbox_resolve(void);

/*
 * The object provides this. The program is about to install a seccomp filter; or, not @filter, it
 * gives up new privileges, which mostly comes before one.
 */
void sandbox_begins(bool filter);

/* The object provides this. The program is about to forbid itself the time stamp counter. */
void sandbox_without_tsc(void);

/* Is it forbidden? That is left by what executed this program, too. Only x86 knows of it. */
static inline bool sandbox_tsc_faults(void)
{
	int how = PR_TSC_ENABLE;

	return !sys2(SYS_prctl, PR_GET_TSC, &how) && how == PR_TSC_SIGSEGV;
}

/* A call of prctl() with these arguments. */
static inline void sandbox_on_prctl(int option, unsigned long arg)
{
	if (option == PR_SET_TSC && arg == PR_TSC_SIGSEGV)
		sandbox_without_tsc();
	if (option == PR_SET_SECCOMP || (option == PR_SET_NO_NEW_PRIVS && arg))
		sandbox_begins(option == PR_SET_SECCOMP);
}

#endif
