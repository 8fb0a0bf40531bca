// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * move.c - the agent's signal becomes another one, where the program uses the one that it is.
 *
 * All real-time signals are the program's. The agent takes one that nobody handles, and keeps it
 * only until the program shows that it is its own: by a handler, by a set of signals that has it
 * and not all the others too, or by getting it from whomever. Then the agent takes another one
 * (signals_leave()), and the one that it leaves is the program's, with all that the kernel knows
 * of it: blocked where the program blocked it, pending, with its own action. What came and was
 * not the agent's is sent again.
 *
 * Each thread moves by itself, when one of these functions or the agent's handler next runs in it
 * (own.signo against agent.signo), as nobody can change the mask of another. Until then its timer
 * goes on with the number that was left; so the agent's handler stays there, in front of the
 * program's, and knows what is whose by what was sent along. For the same reason the kernel's
 * action for such a number is never the default one, which would end the program: that is put in
 * place when a signal of the program's own comes.
 */
#include <string.h>

#include "agent.h"

/* Signals of one number that may wait for a thread while it moves. */
#define MOST_WAITING 4

static ksigset bit_of(int signo)
{
	return (ksigset)1 << (signo - 1);
}

/* Sends the program what the agent got for it, to this thread or to the process, as it came. */
static void send_again(int signo, const siginfo_t *si)
{
	int pid = sys0(SYS_getpid);

	if (si->si_code == SI_TKILL)
		sys4(SYS_rt_tgsigqueueinfo, pid, sys0(SYS_gettid), signo, si);
	else
		sys3(SYS_rt_sigqueueinfo, pid, signo, si);
}

/* Takes from the queue what the agent was sent by that number; the rest stays, in its order. */
static void drain(int signo)
{
	const struct timespec at_once = { 0, 0 };
	siginfo_t waiting[MOST_WAITING];
	ksigset one = bit_of(signo);
	int n = 0;

	while (n < MOST_WAITING &&
	       sys4(SYS_rt_sigtimedwait, &one, &waiting[n], &at_once, sizeof(one)) == signo)
		n += !handler_is_ours(&waiting[n]);
	for (int i = 0; i < n; i++)
		send_again(signo, &waiting[i]);
}

/* @mask: the signals that this thread has blocked, or that it has again when a handler ends. */
static void move_thread(ksigset *mask)
{
	int from = own.signo, to = agent.signo;
	struct thread *t = agent_self();

	if (t && t->armed)
		agent_retime(t, to);
	drain(from);
	own.left_blocked &= ~(bit_of(from) | bit_of(to));
	if (own.blocked)
		own.left_blocked |= bit_of(from);
	*mask = own.blocked ? *mask | bit_of(from) : *mask & ~bit_of(from);
	own.blocked = *mask & bit_of(to);
	/* Where a stack has no room it stays held back (held.c). */
	*mask = own.cramped || own.held.hi ? *mask | bit_of(to) : *mask & ~bit_of(to);
	own.signo = to;
}

static bool lags(void)
{
	return own.signo && own.signo != agent.signo;
}

void move_follow(void)
{
	ksigset mask;

	if (!agent.on || in_sandbox() || !lags() || agent.pid != (int)sys0(SYS_getpid))
		return;
	mask = block_signals();
	move_thread(&mask);
	restore_signals(mask);
}

bool move_away(void)
{
	if (in_sandbox() || agent.pid != (int)sys0(SYS_getpid))
		return false;
	move_follow();
	if (!signals_leave())
		return false;
	move_follow();
	return true;
}

void move_if_named(const sigset_t *set)
{
	if (!agent.on || !set || !sigismember(set, agent.signo))
		return;
	for (int signo = SIGRTMIN + 1; signo <= SIGRTMAX; signo++) {
		if (!sigismember(set, signo)) {
			move_away();
			return;
		}
	}
}

void move_in_handler(ksigset *mask)
{
	if (lags() && !in_sandbox())
		move_thread(mask);
}

bool move_for(int signo, const siginfo_t *si, ksigset *mask)
{
	if (in_sandbox() || agent.pid != (int)sys0(SYS_getpid))
		return false;
	if (signo == agent.signo && !signals_leave())
		return false;
	if (lags())
		move_thread(mask);
	else if (!signals_allow_default(signo))
		return true;
	send_again(signo, si);
	return true;
}
