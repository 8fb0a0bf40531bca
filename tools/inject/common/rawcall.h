/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rawcall.h - the system calls that a program makes by number, with libc's syscall().
 */
#ifndef INJECT_RAWCALL_H
#define INJECT_RAWCALL_H

#include <stdbool.h>

/* Finds the function that the hook stands in front of. */
void rawcall_resolve(void);

/*
 * The object provides this. The program calls rt_sigaction(). Returns true if that was all there
 * is to do, with what the system call returns in *@ret.
 */
bool rawcall_on_action(int signo, const void *act, void *old, unsigned long size, long *ret);

/* The object provides this. The program is about to make a child, or a thread, with @flags. */
void rawcall_on_clone(unsigned long flags);

#endif
