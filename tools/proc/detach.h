/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * detach.h - let a thread go that was stopped to look at it.
 */
#ifndef TOOLS_PROC_DETACH_H
#define TOOLS_PROC_DETACH_H

/*
 * Ends the tracing of thread @tid, which PTRACE_INTERRUPT stopped, or, if @signo is not
 * 0, that signal, which it then gets. On x86 a call that waits without a limit goes on
 * even if it is one that a stop ends with EINTR.
 */
void detach(int tid, int signo);

#endif
