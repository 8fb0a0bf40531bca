// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * move.c - changes the agent's signal if the program uses that signal.
 *
 * All real-time signals belong to the program. The agent takes one that nobody handles, and keeps
 * it only until the program uses it: by a handler, by a set of signals that contains it and not all
 * the others too, or because somebody sends it to the program. Then the agent takes another one
 * (signals_leave()). The signal that it leaves is the program's, with all state that the kernel
 * keeps: blocked where the program blocked it, pending, and with its own action. Signals that came
 * and were not the agent's are sent again.
 *
 * Each thread moves by itself, when one of these functions or the agent's handler next runs in it
 * (local.signo differs from agent.signo), as no thread can change another's mask. Until then its
 * timer goes on with the old number. So the agent's handler stays in front of the program's for
 * that number, and tells the signals apart by what was sent along with them. For the same reason
 * the kernel's action for such a number is never the default one, which would end the program: the
 * default action is set when a signal comes that is the program's own.
 */
#include <errno.h>
#include <string.h>

#include "agent.h"

/* The most pending signals of one number that a thread keeps while it moves. */
#define MOST_WAITING 4

static ksigset bit_of(int signo)
{
	return (ksigset)1 << (signo - 1);
}

/*
 * Sends a signal that the agent received to the program again, to this thread or to the process, as
 * it was sent at first. Of a signal that kill() sent, the kernel lets only the first thread repeat who
 * sent it: in others it comes as sent by this process.
 */
static void send_again(int signo, const siginfo_t *si)
{
	int pid = sys0(SYS_getpid);

	if (si->si_code == SI_TKILL)
		sys4(SYS_rt_tgsigqueueinfo, pid, sys0(SYS_gettid), signo, si);
	else if (sys3(SYS_rt_sigqueueinfo, pid, signo, si) == -EPERM)
		sys2(SYS_kill, pid, signo);
}

uint64_t move_drain(int signo, const struct agent_thread *t, bool *others)
{
	const struct timespec at_once = { 0, 0 };
	siginfo_t waiting[MOST_WAITING];
	ksigset one = bit_of(signo);
	uint64_t ran_out = 0;
	int n = 0;

	while (n < MOST_WAITING &&
	       sys4(SYS_rt_sigtimedwait, &one, &waiting[n], &at_once, sizeof(one)) == signo) {
		const siginfo_t *si = &waiting[n];

		if (t && si->si_code == SI_TIMER && si->si_value.sival_ptr == t)
			ran_out += 1 + (uint64_t)(unsigned int)si->si_overrun;
		n += !handler_is_ours(si);
	}
	for (int i = 0; i < n; i++)
		send_again(signo, &waiting[i]);
	*others = n;
	return ran_out;
}

/*
 * Makes this thread use the agent's current signal. @mask has the signals that this thread has
 * blocked, or will have blocked when a handler ends; it is changed accordingly.
 */
static void move_thread(ksigset *mask)
{
	int from = local.signo, to = agent.signo;
	struct agent_thread *t = agent_self();
	bool others;

	if (t && t->armed)
		agent_retime(t, to);
	move_drain(from, NULL, &others);
	local.left_blocked &= ~(bit_of(from) | bit_of(to));
	if (local.blocked)
		local.left_blocked |= bit_of(from);
	*mask = local.blocked ? *mask | bit_of(from) : *mask & ~bit_of(from);
	local.blocked = *mask & bit_of(to);
	/* The signal stays blocked on a stack that has no room for it (hold_back.c). */
	*mask = local.cramped || local.held.hi ? *mask | bit_of(to) : *mask & ~bit_of(to);
	local.signo = to;
}

static bool lags(void)
{
	return local.signo && local.signo != agent.signo;
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
