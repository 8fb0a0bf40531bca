/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sandbox.h - the signs that a program is about to forbid itself system calls.
 */
#ifndef INJECT_SANDBOX_H
#define INJECT_SANDBOX_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <sys/prctl.h>

/* Finds the functions that the hooks stand in front of. */
void sandbox_resolve(void);

/*
 * The object provides this. The program is about to install a seccomp filter; or, not @filter, it
 * gives up new privileges, which mostly comes before one.
 */
void sandbox_begins(bool filter);

/* A call of prctl() with these arguments. */
static inline void sandbox_on_prctl(int option, unsigned long arg)
{
	if (option == PR_SET_SECCOMP || (option == PR_SET_NO_NEW_PRIVS && arg))
		sandbox_begins(option == PR_SET_SECCOMP);
}

#endif
