// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * relatives.c - processes that are closer to this one than the child of a fork().
 *
 * - A child of clone() may share this memory, including the variables of the thread that made it,
 *   and run beside its parent, unlike a child of vfork(), for which its parent waits. What the
 *   child does in the hooks must not be reported as if that thread did it. Once there was such a
 *   child, each hook that reports something checks which process it is in (agent_self()).
 *
 * - A tracer gets each signal of the processes that it traces. A tracer of a recorded process did
 *   not ask for the agent's signals. So a process that lets another than the recorder trace it is
 *   not sampled from then on, and programs that it executes are left alone (common/join.h).
 */
#include <sched.h>
#include <stdarg.h>
#include <sys/ptrace.h>

#include "../common/rawcall.h"
#include "agent.h"

static struct {
	int (*clone)(int (*)(void *), void *, int, void *, void *, void *, void *);
	long (*ptrace)(enum __ptrace_request, void *, void *, void *);
} next_call;

void relatives_resolve(void)
{
	*(void **)&next_call.clone = next_symbol("clone");
	*(void **)&next_call.ptrace = next_symbol("ptrace");
}

void rawcall_on_clone(unsigned long flags)
{
	if (flags & CLONE_VM && !(flags & (CLONE_THREAD | CLONE_VFORK)))
		agent.shares_memory = true;
}

/* Returns how many more arguments a clone() with @flags has. */
static int more_arguments(int flags)
{
	if (flags & (CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID))
		return 3;
	if (flags & CLONE_SETTLS)
		return 2;
	return flags & (CLONE_PARENT_SETTID | CLONE_PIDFD) ? 1 : 0;
}

/* This hook need not be left by a tail call: the child begins in @fn, on a stack of its own. */
HOOK_API int clone(int (*fn)(void *arg), void *stack, int flags, void *arg, ...)
{
	void *more[3] = { 0 };
	va_list ap;

	va_start(ap, arg);
	for (int i = 0; i < more_arguments(flags); i++)
		more[i] = va_arg(ap, void *);
	va_end(ap);
	rawcall_on_clone(flags);
	if (!next_call.clone)
		relatives_resolve();
	return next_call.clone(fn, stack, flags, arg, more[0], more[1], more[2]);
}

/*
 * Ends sampling because this process lets itself be traced. The recorder, which is the parent of
 * the command, may trace it: it passes the agent's signals on.
 */
static void be_traced(void)
{
	struct agent_thread *t = agent_self();

	if (!agent.on || in_sandbox() || agent.pid != (int)sys0(SYS_getpid) ||
	    sys0(SYS_getppid) == (long)agent.header->recorder)
		return;
	agent.traced = true;
	if (!t)
		return;
	agent_settle(t, true);
	change_agent_signal(SIG_BLOCK);
	agent_disarm(t);
}

HOOK_API long ptrace(enum __ptrace_request request, ...)
{
	void *more[3];
	va_list ap;

	va_start(ap, request);
	for (int i = 0; i < 3; i++)
		more[i] = va_arg(ap, void *);
	va_end(ap);
	if (request == PTRACE_TRACEME)
		be_traced();
	if (!next_call.ptrace)
		relatives_resolve();
	return next_call.ptrace(request, more[0], more[1], more[2]);
}
