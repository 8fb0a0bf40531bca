// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ended.c - time of threads that ended before the kernel's ticks could tell where they spent it: their
 * time in the kernel where they have events, all of it where they have timers only.
 *
 * A thread of a millisecond lives between two ticks in most cases. Its silent periods are exact, but
 * no signal of its timer says in which system calls they were. So a thread that ends leaves them
 * here, and the first tick in each other thread stands for those threads, too: a tick comes once in
 * its length of CPU time, and the thread that it finds has used only a part of that since it began.
 * The rest was used by threads that no tick found. How long that is on average is known from the time that
 * all threads used and from the number of ticks in them. It is not the kernel's interval: threads that begin
 * at a tick, as most do on a busy machine, end before the next one. The periods are shared by calls.c, as
 * those of one thread are.
 *
 * A thread of some ticks ends between two of them, too: its last periods in the kernel have no tick. But each
 * tick that found a call, not only the first one, stands for a whole tick of time, of which its own thread
 * may have fewer periods so far. Such a call gets the rest of what ended threads left (ended_lend()).
 *
 * Threads with the same start routine are taken to do the same work. What they left is for them alone, so the
 * time of all of them is exact, and ticks only say how it is shared among them. If all threads left it in
 * common, those that ticks find too often, by chance or because their length is in step with ticks, would get
 * the time of others.
 *
 * Without events the place that a first tick finds gets that rest, if so much was left by then. What
 * waits would go up and down without a bound, and what waits when the process ends has no place. So
 * each first tick also takes a part of what waits, wherever it comes: then some 25 ms wait.
 */
#include <string.h>

#include "agent.h"

#define SPREAD 32 /* the part of what waits that each claim takes beyond its own */
#define PRIOR 4 /* first ticks that stand for the kernel's interval, before there are others */
#define KINDS 16 /* of threads; further ones share the last */

/**
 * struct kind - what ended threads of a kind left
 * @start: their start routine; NULL: they have none that the agent knows.
 * @calls: how much of their time is in system calls.
 * @firsts: number of first ticks in threads of this kind.
 * @before: time that these threads had used at their first ticks, in ns.
 * @behind: time that ended threads used behind their last ticks, in ns.
 * @unused: time in system calls that is not in @calls.time because it is below 0, in ns.
 * @silent: their silent periods.
 * @unseen: periods of threads without an event that no tick found.
 * @claimed: time that ticks have claimed of those, less what they got, in ns; less than a period.
 */
struct kind {
	const void *start;
	struct calls calls;
	uint64_t firsts;
	uint64_t before;
	uint64_t behind;
	int64_t unused;
	uint64_t silent;
	uint64_t unseen;
	uint64_t claimed;
};

/**
 * struct ended - what ended threads left
 * @busy: a thread changes it.
 * @nr: number of kinds.
 * @kinds: the kinds.
 */
static struct ended {
	_Atomic bool busy;
	unsigned int nr;
	struct kind kinds[KINDS];
} ended;

/*
 * A handler must not wait for another thread. What it does not note now is missing in the estimate
 * only: no time is lost.
 */
static bool enter(void)
{
	return !atomic_exchange_explicit(&ended.busy, true, memory_order_acquire);
}

/* Returns the kind of threads that begin in @start. */
static struct kind *kind_of(const void *start)
{
	for (unsigned int i = 0; i < ended.nr; i++)
		if (ended.kinds[i].start == start)
			return &ended.kinds[i];
	if (ended.nr == KINDS)
		return &ended.kinds[KINDS - 1];
	ended.kinds[ended.nr].start = start;
	return &ended.kinds[ended.nr++];
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
	uint64_t silent = 0, unseen = 0;

	for (unsigned int i = 0; i < ended.nr; i++) {
		silent += ended.kinds[i].silent;
		unseen += ended.kinds[i].unseen;
	}
	tell(slot, &slot->kernel_rest, silent * agent.period);
	tell(slot, &slot->ticks_rest, unseen * agent.period);
	atomic_store_explicit(&ended.busy, false, memory_order_release);
}

/*
 * Notes a first tick, which came when its thread had used @used ns. Returns how much time of other threads
 * it stands for: together such ticks stand for all time that no other tick does, however seldom they come.
 */
static uint64_t first_tick(struct kind *kind, uint64_t used)
{
	uint64_t each;

	kind->firsts++;
	kind->before += used;
	each = (kind->before + kind->behind + PRIOR * agent.tick) / (kind->firsts + PRIOR);
	return each > used ? each - used : 0;
}

/*
 * A thread's ticks found it in calls for longer or for less long than it was there. What its calls
 * did not get of that, or got too much, is left with the periods: else an error of one thread would
 * not be made good by that of another one.
 */
bool ended_leave(const void *start, const struct calls *calls, uint64_t behind, uint64_t periods)
{
	struct kind *kind;
	int64_t time;

	if (!enter())
		return false;
	kind = kind_of(start);
	kind->silent += periods;
	kind->behind += behind;
	time = (int64_t)(kind->calls.time + calls->time - calls->taken * agent.period) +
	       kind->unused;
	kind->calls.time = time > 0 ? time : 0;
	kind->unused = time < 0 ? time : 0;
	leave();
	return true;
}

uint64_t ended_share(const void *start, uint64_t used, bool in_call)
{
	struct kind *kind;
	uint64_t here;

	if (!enter())
		return 0;
	kind = kind_of(start);
	calls_count(&kind->calls, in_call, kind->calls.last + first_tick(kind, used));
	here = calls_share(&kind->calls, kind->silent, in_call, agent.period);
	kind->silent -= here;
	kind->calls.taken += in_call ? here : 0;
	leave();
	return here;
}

uint64_t ended_lend(const void *start, struct calls *calls, uint64_t here)
{
	const int64_t left = (int64_t)(calls->time - (calls->taken + here) * agent.period);
	uint64_t moved, periods;
	struct kind *kind;
	struct calls all;

	if (left <= 0 || !enter())
		return 0;
	kind = kind_of(start);
	all = kind->calls;
	all.time += left;
	periods = calls_share(&all, kind->silent, true, agent.period);
	moved = periods * agent.period < (uint64_t)left ? periods * agent.period : (uint64_t)left;
	kind->calls.time += moved;
	kind->calls.taken += periods;
	kind->silent -= periods;
	calls->time += periods * agent.period - moved;
	leave();
	return periods;
}

uint64_t ended_rest(void)
{
	uint64_t rest = 0;

	if (!enter())
		return 0;
	for (unsigned int i = 0; i < ended.nr; i++) {
		rest += ended.kinds[i].silent;
		ended.kinds[i].silent = 0;
	}
	leave();
	return rest;
}

bool ended_leave_unseen(const void *start, uint64_t behind, uint64_t periods)
{
	struct kind *kind;

	if (!enter())
		return false;
	kind = kind_of(start);
	kind->behind += behind;
	kind->unseen += periods;
	leave();
	return true;
}

uint64_t ended_claim(const void *start, uint64_t used)
{
	struct kind *kind;
	uint64_t periods;

	if (!enter())
		return 0;
	kind = kind_of(start);
	kind->claimed += first_tick(kind, used) + kind->unseen * agent.period / SPREAD;
	periods = kind->claimed / agent.period;
	kind->claimed %= agent.period;
	periods = periods < kind->unseen ? periods : kind->unseen;
	kind->unseen -= periods;
	leave();
	return periods;
}

uint64_t ended_unseen_rest(void)
{
	uint64_t rest = 0;

	if (!enter())
		return 0;
	for (unsigned int i = 0; i < ended.nr; i++) {
		rest += ended.kinds[i].unseen;
		ended.kinds[i].unseen = 0;
	}
	leave();
	return rest;
}

void ended_fork_child(void)
{
	ended.nr = 0;
	memset(ended.kinds, 0, sizeof(ended.kinds));
	atomic_store(&ended.busy, false);
}
