// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ended.c - time of threads that ended before the kernel's ticks could tell where they spent it: their
 * time in the kernel where they have events, all of it where they have timers only.
 *
 * A thread of a millisecond lives between two ticks in most cases. Its silent periods are exact, but
 * no signal of its timer says in which system calls they were. So a thread that ends leaves them
 * here, and the first tick in each other thread stands for those threads, too: a tick comes once in
 * its length of CPU time, and the thread that it finds has used only a part of that since it began.
 * The rest was used by threads that no tick found. The periods are shared by calls.c, as those of
 * one thread are.
 *
 * Without events the place that a first tick finds gets that rest, if so much was left by then. What
 * waits would go up and down without a bound, and what waits when the process ends has no place. So
 * each first tick also takes a part of what waits, wherever it comes: then some 25 ms wait.
 */
#include "agent.h"

#define SPREAD 32 /* the part of what waits that each claim takes beyond its own */

/**
 * struct ended - what ended threads left
 * @busy: a thread changes it.
 * @calls: how much of their time is in system calls.
 * @unused: time in system calls that is not in @calls.time because it is below 0, in ns.
 * @silent: their silent periods.
 * @unseen: periods of threads without an event that no tick found.
 * @claimed: time that ticks have claimed of those, less what they got, in ns; less than a period.
 */
static struct ended {
	_Atomic bool busy;
	struct calls calls;
	int64_t unused;
	uint64_t silent;
	uint64_t unseen;
	uint64_t claimed;
} ended;

/*
 * A handler must not wait for another thread. What it does not note now is missing in the estimate
 * only: no time is lost.
 */
static bool enter(void)
{
	return !atomic_exchange_explicit(&ended.busy, true, memory_order_acquire);
}

/* Returns whether a slot is still that of the first thread, or of another one that began this image. */
static bool is_ours(struct rec_slot *slot)
{
	return REC_OWNER_PID(atomic_load(&slot->owner)) == agent.pid &&
	       slot->instance == agent.instance && slot->start_slot == agent.start_slot;
}

/*
 * Tells in @rest what waits. The first thread may have ended, and its slot may become another process's at
 * any moment. Who takes a slot becomes its owner, and only then makes it empty. So if it is ours after the
 * store, the other one will empty it; if it is not, the store is undone, unless the other one has told
 * something itself.
 */
static void tell(struct rec_slot *slot, _Atomic uint64_t *rest, uint64_t ns)
{
	if (!is_ours(slot))
		return;
	atomic_store(rest, ns);
	if (!is_ours(slot))
		atomic_compare_exchange_strong(rest, &ns, 0);
}

/* Leaves. The recorder sees what waits: it takes that if the process is killed. */
static void leave(void)
{
	struct rec_slot *slot = &agent.slots[agent.start_slot];

	tell(slot, &slot->kernel_rest, ended.silent * agent.period);
	tell(slot, &slot->ticks_rest, ended.unseen * agent.period);
	atomic_store_explicit(&ended.busy, false, memory_order_release);
}

/*
 * A thread's ticks found it in calls for longer or for less long than it was there. What its calls
 * did not get of that, or got too much, is left with the periods: else an error of one thread would
 * not be made good by that of another one.
 */
bool ended_leave(const struct calls *calls, uint64_t periods)
{
	int64_t time;

	if (!enter())
		return false;
	ended.silent += periods;
	time = (int64_t)(ended.calls.time + calls->time - calls->taken * agent.period) +
	       ended.unused;
	ended.calls.time = time > 0 ? time : 0;
	ended.unused = time < 0 ? time : 0;
	leave();
	return true;
}

uint64_t ended_share(uint64_t used, bool in_call)
{
	uint64_t others = agent.tick > used ? agent.tick - used : 0, here;

	if (!enter())
		return 0;
	calls_count(&ended.calls, in_call, ended.calls.last + others);
	here = calls_share(&ended.calls, ended.silent, in_call, agent.period);
	ended.silent -= here;
	ended.calls.taken += in_call ? here : 0;
	leave();
	return here;
}

uint64_t ended_rest(void)
{
	uint64_t rest;

	if (!enter())
		return 0;
	rest = ended.silent;
	ended.silent = 0;
	leave();
	return rest;
}

bool ended_leave_unseen(uint64_t periods)
{
	if (!enter())
		return false;
	ended.unseen += periods;
	leave();
	return true;
}

uint64_t ended_claim(uint64_t used)
{
	uint64_t others = agent.tick > used ? agent.tick - used : 0, periods;

	if (!enter())
		return 0;
	ended.claimed += others + ended.unseen * agent.period / SPREAD;
	periods = ended.claimed / agent.period;
	ended.claimed %= agent.period;
	periods = periods < ended.unseen ? periods : ended.unseen;
	ended.unseen -= periods;
	leave();
	return periods;
}

uint64_t ended_unseen_rest(void)
{
	uint64_t rest;

	if (!enter())
		return 0;
	rest = ended.unseen;
	ended.unseen = 0;
	leave();
	return rest;
}

void ended_fork_child(void)
{
	ended.calls = (struct calls){ 0 };
	ended.unused = 0;
	ended.silent = 0;
	ended.unseen = 0;
	ended.claimed = 0;
	atomic_store(&ended.busy, false);
}
