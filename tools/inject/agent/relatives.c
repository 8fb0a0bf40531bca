// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * relatives.c - processes that are closer to this one than the child of a fork().
 *
 * - A child of clone() may have this memory too, the variables of the thread that made it
 *   included, and runs beside it: unlike that of vfork(), for which its parent waits. What it does
 *   in the hooks must not be told as if that thread did it. Once there was one, each hook that
 *   tells something asks which process it is in (agent_self()).
 *
 * - A tracer is told of each signal of those that it traces. One that is recorded too did not ask
 *   for the agent's: who has himself traced by another than the recorder is not sampled from then
 *   on, and what he executes is left alone (common/join.h).
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

/* How many arguments more are given with @flags. */
static int more_arguments(int flags)
{
	if (flags & (CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID))
		return 3;
	if (flags & CLONE_SETTLS)
		return 2;
	return flags & (CLONE_PARENT_SETTID | CLONE_PIDFD) ? 1 : 0;
}

/* The child begins in @fn, on a stack of its own. */
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

/* The recorder, which is the parent of the command, lets its signals pass. */
static void be_traced(void)
{
	struct thread *t = agent_self();

	if (!agent.on || in_sandbox() || agent.pid != (int)sys0(SYS_getpid) ||
	    sys0(SYS_getppid) == (long)agent.header->recorder)
		return;
	agent.traced = true;
	if (!t)
		return;
	agent_settle(t);
	change_own_signal(SIG_BLOCK);
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
