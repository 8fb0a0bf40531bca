/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rawcall.h - system calls that a program makes by number, with libc's syscall().
 */
#ifndef INJECT_RAWCALL_H
#define INJECT_RAWCALL_H

#include <stdbool.h>

/* Looks up the function that is hooked. */
void rawcall_resolve(void);

/*
 * Called when the program calls rt_sigaction(). Returns true if the call was handled; *@ret is then
 * what the system call returns. The object defines this.
 */
bool rawcall_on_action(int signo, const void *act, void *old, unsigned long size, long *ret);

/*
 * Called when the program is about to create a child or a thread with @flags. The object defines
 * this.
 */
void rawcall_on_clone(unsigned long flags);

#endif
