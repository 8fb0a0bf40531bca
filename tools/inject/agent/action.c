// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * action.c - the action of the agent's signal, where the program sets it by rt_sigaction().
 *
 * A program that creates processes may give all signals their default action in the child by
 * calling rt_sigaction() itself, past libc, because libc reserves some of the signals. The agent's
 * timer would end that child. So the system call is given the meaning of sigaction(): what the
 * program sets for the agent's signal is only remembered, and what the program reads is what it
 * set.
 */
#include <errno.h>
#include <string.h>

#include "../common/rawcall.h"
#include "agent.h"

/*
 * Returns whether a word can be read at @p. The kernel reads the set before it finds that -1 is no
 * valid change of a mask.
 */
static bool can_read(const void *p)
{
	return sys4(SYS_rt_sigprocmask, -1, p, NULL, sizeof(ksigset)) != -EFAULT;
}

/* Returns whether a word can be written at @p. Overwrites it. */
static bool can_write(void *p)
{
	return !sys4(SYS_rt_sigprocmask, SIG_BLOCK, NULL, p, sizeof(ksigset));
}

/* An action is shorter than a page, so it is enough to test its two ends. */
static bool can_read_action(const struct kernel_action *act)
{
	return can_read(act) && can_read(&act->mask);
}

static bool can_write_action(struct kernel_action *act)
{
	return can_write(act) && can_write(&act->mask);
}

static struct sigaction from_kernel(const struct kernel_action *from)
{
	struct sigaction act = { .sa_handler = from->handler, .sa_flags = from->flags };

	memcpy(&act.sa_mask, &from->mask, sizeof(from->mask));
	return act;
}

/* Copies all members but the restorer, which only the kernel and libc know. */
static void to_kernel(const struct sigaction *from, struct kernel_action *act)
{
	act->handler = from->sa_handler;
	act->flags = (unsigned long)(unsigned int)from->sa_flags;
	memcpy(&act->mask, &from->sa_mask, sizeof(act->mask));
}

/*
 * Sets and reads the program's action for a signal that is the agent's, or was. Returns what the
 * system call would.
 */
static long agents_action(int signo, const struct kernel_action *act, struct kernel_action *old)
{
	struct sigaction now, was;

	if (act && !can_read_action(act))
		return -EFAULT;
	if (act)
		now = from_kernel(act);
	if (signals_action(signo, act ? &now : NULL, &was))
		return -errno;
	if (!old)
		return 0;
	if (!can_write_action(old))
		return -EFAULT;
	old->restorer = NULL;
	to_kernel(&was, old);
	return 0;
}

/*
 * Sets and reads the action of any other signal. The kernel may have the agent's handler where the
 * program has set its own.
 */
static long others_action(int signo, const struct kernel_action *act, struct kernel_action *old)
{
	long ret = sys4(SYS_rt_sigaction, signo, act, old, sizeof(ksigset));
	struct sigaction was;

	if (ret || !old)
		return ret;
	was = from_kernel(old);
	signals_translate(signo, &was);
	to_kernel(&was, old);
	return 0;
}

/* The child of a vfork() shares this memory, but has no timers, and has actions of its own. */
bool rawcall_on_action(int signo, const void *act, void *old, unsigned long size, long *ret)
{
	if (!agent.on || in_sandbox() || size != sizeof(ksigset))
		return false;
	if ((signo == agent.signo || signals_were_left(signo)) &&
	    agent.pid == (int)sys0(SYS_getpid))
		*ret = agents_action(signo, act, old);
	else
		*ret = others_action(signo, act, old);
	return true;
}
