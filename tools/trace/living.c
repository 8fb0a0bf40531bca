// SPDX-License-Identifier: GPL-2.0-or-later
/* living.c - messages of `shstk trace -p` about a process, with and without --no-stop. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tools/proc/tasks.h"
#include "tools/shstk.h"
#include "tools/trace/trace.h"

#define PF_KTHREAD 0x00200000 /* a task flag of the kernel (include/linux/sched.h), shown in stat */

int trace_check(int pid)
{
	struct task_stat stat;

	if (task_stat(pid, pid, &stat)) {
		complain("there is no process %d", pid);
		return EXIT_FAILED;
	}
	if (stat.flags & PF_KTHREAD) {
		complain(
			"process %d (%s) is a thread of the kernel: it has no stack of a program (its own is in /proc/%d/stack)",
			pid, stat.name, pid);
		return EXIT_FAILED;
	}
	if (process_is_zombie(pid)) {
		complain("process %d (%s) is a zombie: it has ended", pid, stat.name);
		return EXIT_FAILED;
	}
	if (pid == getpid()) {
		complain("process %d is this command", pid);
		return EXIT_FAILED;
	}
	return 0;
}

void trace_describe(int pid, int tid, struct trace_thread *thread)
{
	struct task_stat stat = { .name = "" };

	task_stat(pid, tid, &stat);
	strcpy(thread->comm, stat.name);
	thread->note = task_state_name(stat.state);
}

int trace_refuse(int pid, const char *how, int err)
{
	if (err == -ESRCH)
		complain("process %d has ended", pid);
	else if (err == -EPERM || err == -EACCES)
		complain(
			"no permission to trace process %d: it needs the same user and ptrace_scope 0, or CAP_SYS_PTRACE",
			pid);
	else
		complain("cannot trace process %d%s: %s", pid, how, strerror(-err));
	return EXIT_FAILED;
}
