// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * thread_event.c - a thread's CPU clock that signals when a period ends, not at the next tick.
 *
 * The kernel looks at CPU-time timers only in its tick. Work that is in phase with the tick is not
 * seen, or is seen too often. A perf event on the thread's clock has a timer of its own in the
 * kernel and signals at the end of each period. It must be silent while the thread is in the
 * kernel: a signal that came during exec would be pending in the next program, and end it. So each
 * of its signals is one period in user mode. Other time on the thread's clock was spent in the
 * kernel. The POSIX timer remains for that time: it finds a system call when the thread returns
 * from one (handler.c).
 *
 * A thread's first period has a random length, so that the time of short threads is right on
 * average. This period has an event of its own, which ends with its first signal.
 *
 * The program must not see a descriptor that it did not open. So the event is mapped, which keeps
 * it alive, and its descriptor is closed. Children of fork() do not get the mapping.
 *
 * If the queue of real-time signals is full (RLIMIT_SIGPENDING is for all processes of a user), the
 * kernel sends SIGIO instead of the event's signal, which would end the program: signals_guard_io()
 * prevents that.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "agent.h"

#define AT_ONCE 50000 /* ns */
#define PAGE 4096 /* the kernel's may be larger: it rounds up */

static long open_clock(uint64_t period)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = period,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	return sys6(SYS_perf_event_open, (long)&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC, 0);
}

/* Makes the descriptor send the agent's signal to this thread. Returns false if it cannot. */
static bool direct(long fd)
{
	struct f_owner_ex owner = { .type = F_OWNER_TID, .pid = sys0(SYS_gettid) };

	return !sys3(SYS_fcntl, fd, F_SETOWN_EX, &owner) &&
	       !sys3(SYS_fcntl, fd, F_SETSIG, agent_signo()) &&
	       !sys3(SYS_fcntl, fd, F_SETFL, O_RDWR | O_ASYNC);
}

/* Opens the thread's event, which does not run yet. Returns its descriptor or a negative errno. */
static long open_event(struct agent_thread *t)
{
	long fd = open_clock(agent.period), p;

	if (fd < 0)
		return fd;
	p = sys6(SYS_mmap, 0, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	if (p < 0 && p > -4096) {
		sys1(SYS_close, fd);
		return p;
	}
	t->event_fd = fd;
	t->event = (void *)p;
	if (direct(fd))
		return fd;
	event_close(t);
	sys1(SYS_close, fd);
	return -EINVAL;
}

/* Enables the event for one signal, @rest ns from now. Returns false if there will be none. */
static bool signal_once(long fd, uint64_t rest)
{
	return !sys3(SYS_ioctl, fd, PERF_EVENT_IOC_PERIOD, (long)&rest) &&
	       !sys3(SYS_ioctl, fd, PERF_EVENT_IOC_REFRESH, 1);
}

/*
 * Returns whether the thread may have an event. A thread that libc does not know may not: the
 * event's signals name no thread, and agent_self() returns NULL there, or the thread whose TLS it
 * uses. A thread whose signals are held back may not either (hold_back.c).
 */
static bool may_open(struct agent_thread *t)
{
	return agent.header->events && !agent.wall && !local.cramped && t->managed &&
	       t->tid == sys0(SYS_gettid);
}

/* Returns a number below @below that varies with @seed. */
static uint64_t any_below(uint64_t below, uint64_t seed)
{
	return (seed * 0x9e3779b97f4a7c15 >> 32) % below;
}

/*
 * Begins the periods anew at this moment; periods that ran out and are in no sample are kept as
 * owed. Of a period that did not run out either all is owed or nothing, so that the sum is right on
 * average.
 */
static void renew(struct agent_thread *t)
{
	uint64_t at = now(CLOCK_THREAD_CPUTIME_ID), began = t->start + t->first;

	t->owed = unsampled_periods(t, at);
	if (t->periods && at > began && (at - began) % agent.period > any_below(agent.period, at))
		t->owed++;
	t->start = at;
	t->first = agent.period;
	t->periods = 0;
}

/* Makes the event signal at the end of each period from now on. Returns false if it cannot. */
static bool signal_each(struct agent_thread *t, long fd)
{
	if (sys3(SYS_ioctl, fd, PERF_EVENT_IOC_ENABLE, 0))
		return false;
	renew(t);
	return true;
}

/* Accounts for @missed periods that ended while the thread's event was opened. */
static void settle_begin(struct agent_thread *t, uint64_t missed)
{
	ksigset old = block_signals();

	if (missed)
		sample_place(t, missed, REC_PLACE_KERNEL);
	restore_signals(old);
}

/*
 * How long after a thread's first period the handler of its event begins, in ns, on average: the
 * event starts after the clock is read, and its signal takes its time. The event is told to signal
 * that much earlier. Otherwise the first functions of all short threads would lose it to the last.
 */
static _Atomic uint64_t delay;
#define DELAY_WEIGHT 16

/* Notes that the handler of a first period began at @at. */
static void learn_delay(const struct agent_thread *t, uint64_t at)
{
	int64_t error = (int64_t)(at - t->first_end);
	int64_t next =
		(int64_t)atomic_load_explicit(&delay, memory_order_relaxed) + error / DELAY_WEIGHT;

	if (next < 0)
		next = 0;
	atomic_store_explicit(&delay, next < AT_ONCE ? next : AT_ONCE, memory_order_relaxed);
}

/*
 * Opens the event for a thread's first period, for one signal, in the thread that begins. If the
 * period is long, the timer is used alone: a tick is a small part of such a period, and few threads
 * get so far.
 *
 * What is left of the period is computed when all else is done: the steps before may take a fifth
 * of a millisecond, and the period may end meanwhile, in the kernel, as it may anywhere else.
 *
 * From then on the timer has another task: at the first tick it tells where that finds the thread.
 */
void event_begin(struct agent_thread *t)
{
	uint64_t end = t->start + t->first + t->periods * agent.period, at, missed = 0;
	long fd;

	/*
	 * signals_guard_io() fails while another thread sets a handler; then the event is opened at
	 * the first sample.
	 */
	if (!t->armed || agent.period > LONG_PERIOD || !may_open(t) || !signals_guard_io())
		return;
	t->tried = true;
	fd = open_event(t);
	if (fd < 0)
		return;
	at = now(CLOCK_THREAD_CPUTIME_ID) + atomic_load_explicit(&delay, memory_order_relaxed);
	if (at >= end)
		missed = (at - end) / agent.period + 1;
	t->first_end = end + missed * agent.period;
	t->first_rest = t->first_end - at;
	if (signal_once(fd, t->first_rest)) {
		settle_begin(t, missed);
		agent_ask(t);
	} else {
		event_close(t);
	}
	sys1(SYS_close, fd);
}

bool event_open(struct agent_thread *t)
{
	bool runs;
	long fd;

	if (t->tried && (!t->first_rest || now(CLOCK_THREAD_CPUTIME_ID) < t->first_end))
		return false;
	if (!may_open(t)) {
		t->tried = true;
		return false;
	}
	if (!signals_guard_io())
		return false;
	t->tried = true;
	event_close(t);
	fd = open_event(t);
	if (fd < 0)
		return false;
	runs = signal_each(t, fd);
	if (!runs)
		event_close(t);
	sys1(SYS_close, fd);
	return runs;
}

/*
 * Returns whether a signal of the first period's event came too late to be of that period. If the
 * period ended in the kernel, silently, its event goes on with periods of the same length. In time
 * means within some microseconds, which a handler needs to get here. The signal may also come
 * early: time that a hypervisor takes counts for the event's timer but not for the thread's clock.
 */
bool event_is_late(const struct agent_thread *t, uint64_t at)
{
	uint64_t least = t->first_rest > AT_ONCE ? t->first_rest : AT_ONCE;

	if (!t->first_rest)
		return false;
	if (at >= t->first_end + least)
		return true;
	learn_delay(t, at);
	return false;
}

/*
 * Ends the event before exec: this thread blocks its signal and removes the event's, because none may
 * be pending in the next program.
 */
void event_end(struct agent_thread *t)
{
	bool others;

	if (!t->event)
		return;
	event_close(t);
	/* If the exec fails, a new event is opened. */
	t->tried = false;
	change_agent_signal(SIG_BLOCK);
	move_drain(agent_signo(), NULL, &others);
	admit_agent_signal();
}

void event_close(struct agent_thread *t)
{
	if (t->event)
		sys2(SYS_munmap, t->event, PAGE);
	t->event = NULL;
	t->first_rest = 0;
}

bool event_late(const siginfo_t *si)
{
	return agent.header->events && !agent.wall && si->si_code >= POLL_IN &&
	       si->si_code <= POLL_HUP;
}

bool event_sent(const struct agent_thread *t, const siginfo_t *si)
{
	return t && t->event && (si->si_code == POLL_IN || si->si_code == POLL_HUP) &&
	       si->si_fd == t->event_fd;
}
