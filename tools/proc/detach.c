// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * detach.c - lets a thread go that was stopped to look at it. See detach.h.
 *
 * Some system calls return EINTR if their thread was stopped, though no handler ran (signal(7),
 * "Interruption of system calls and library functions by stop signals"). Programs meet that under
 * debuggers, but few were tried with one. On x86 the kernel looks at the result only once the
 * thread goes on, and restarts a call whose result is ERESTARTNOHAND unless a handler is to run
 * (arch/x86/kernel/signal.c, arch_do_signal_or_restart()). So this is the result that the call gets
 * here. A call with a time limit would begin with the full limit again, and is left alone. On arm64
 * the first argument is lost by then, so nothing is done.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>

#include "tools/proc/detach.h"

#if defined(__x86_64__)
#define ERESTARTNOHAND 514 /* from include/linux/errno.h */
#define CS_64BIT 0x33 /* __USER_CS; other modes number system calls differently */

/* Returns whether the system call fails when it is stopped and has no time limit. */
static bool waits_for_good(const struct user_regs_struct *r)
{
	switch (r->orig_rax) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
		return (int)r->r10 < 0;
	case SYS_epoll_pwait2:
	case SYS_semtimedop:
		return !r->r10;
	case SYS_semop:
		return true;
	case SYS_rt_sigtimedwait:
		return !r->rdx;
	case SYS_io_getevents:
	case SYS_io_pgetevents:
		return !r->r8;
	default:
		return false;
	}
}

static void go_on_waiting(int tid)
{
	struct user_regs_struct r;

	if (ptrace(PTRACE_GETREGS, tid, 0, &r) || r.cs != CS_64BIT || (int64_t)r.rax != -EINTR ||
	    !waits_for_good(&r))
		return;
	r.rax = -ERESTARTNOHAND;
	ptrace(PTRACE_SETREGS, tid, 0, &r);
}
#else
static void go_on_waiting(int tid)
{
	(void)tid;
}
#endif

void detach(int tid, int signo)
{
	if (!signo)
		go_on_waiting(tid);
	ptrace(PTRACE_DETACH, tid, 0, (void *)(uintptr_t)signo);
}
