/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * detach.h - lets a thread go that was stopped to look at it.
 */
#ifndef TOOLS_PROC_DETACH_H
#define TOOLS_PROC_DETACH_H

/*
 * Ends the tracing of thread @tid, which was stopped by PTRACE_INTERRUPT or by signal @signo. The
 * thread then gets that signal, unless @signo is 0. On x86 a system call that waits without a limit
 * goes on, even if it is one that a stop ends with EINTR.
 */
void detach(int tid, int signo);

#endif
