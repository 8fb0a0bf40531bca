// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * handler.c - the agent's signal: from a thread's timer or event, from the recorder, or from
 * somebody else.
 */
#include <errno.h>
#include <ucontext.h>

#include "agent.h"

/*
 * Has an alternate stack, if the handler runs on one, so many bytes left? It may be as small as
 * the kernel's frame permits, and what lies below it is the program's.
 */
static bool has_room(const void *context, size_t bytes)
{
	const stack_t *stack = &((const ucontext_t *)context)->uc_stack;
	uintptr_t used_to = (uintptr_t)__builtin_frame_address(0);
	uintptr_t left = used_to - (uintptr_t)stack->ss_sp;

	return left >= bytes || left >= stack->ss_size;
}

static struct thread *from_timer(const siginfo_t *si)
{
	uintptr_t at = (uintptr_t)si->si_value.sival_ptr;
	uintptr_t base = (uintptr_t)agent.threads;
	struct thread *t;

	if (si->si_code != SI_TIMER || at < base || (at - base) % sizeof(*t) ||
	    (at - base) / sizeof(*t) >= agent.nr_slots)
		return NULL;
	return (struct thread *)at;
}

static bool from_recorder(const siginfo_t *si)
{
	return si->si_code == SI_QUEUE && agent.header &&
	       (uint64_t)(uintptr_t)si->si_value.sival_ptr == agent.header->cookie;
}

/* Periods that a signal stands for. The clock is not asked where calls are forbidden. */
static uint64_t ran_out(const struct thread *t, const siginfo_t *si)
{
	bool timer = si->si_code == SI_TIMER;
	uint64_t periods;

	if (!t->event)
		return (1 + (uint64_t)(unsigned int)si->si_overrun) * t->stretch;
	if (agent.sandboxed)
		return !timer;
	periods = unsampled_periods(t);
	/* The tick is not to come before the event, but behind one that was silent. */
	return timer && periods < 2 ? 0 : periods;
}

/*
 * By wall-clock time each sample of a thread that waits wakes it up: thousands of them
 * would leave the program no CPU. So many samples a second and no more are taken of those
 * that hardly ran since their last one; each stands for more time then.
 */
#define MOST_OF_WAITING 4000

static void spread(struct thread *t, uint64_t periods)
{
	uint64_t period = agent.period, used = t->cpu_seen;
	uint64_t stretch =
		(uint64_t)atomic_load(&agent.armed) * 1000000000 / (period * MOST_OF_WAITING);
	struct itimerspec when;

	if (agent.sandboxed || (stretch <= 1 && t->stretch == 1))
		return;
	t->cpu_seen = now(CLOCK_THREAD_CPUTIME_ID);
	if (stretch < 1 || (t->cpu_seen - used) * 8 > periods * period)
		stretch = 1;
	if (stretch == t->stretch)
		return;
	t->stretch = stretch;
	when.it_value = when.it_interval = to_timespec(stretch * period);
	sys4(SYS_timer_settime, t->timer, 0, &when, NULL);
	if (stretch > atomic_load_explicit(&agent.header->stretch, memory_order_relaxed))
		atomic_store(&agent.header->stretch, stretch);
}

/* The clock by which the periods end. */
static uint64_t period_clock(void)
{
	return now(agent.wall ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID);
}

/*
 * A sample may take longer than a period: of a deep stack that no rules describe, or where
 * the machine is starved of CPU time. The next signal is pending then when the handler
 * ends, and the program would never get on. So it first runs for as long as the sample
 * took; the periods that end meanwhile are in the weight of the next one.
 *
 * Return: was a sample taken?
 */
static bool take_in_turn(struct thread *t, uint64_t periods, const void *context)
{
	uint64_t begin;

	if (agent.sandboxed) { /* the clock must not be asked */
		sample_take(t, periods, context);
		return true;
	}
	begin = period_clock();
	if (begin < t->rest_until && !atomic_load_explicit(&t->open, memory_order_relaxed)) {
		t->put_off += t->event ? 0 : periods; /* an event's are what no sample has */
		return false;
	}
	periods += t->put_off;
	t->put_off = 0;
	sample_take(t, periods, context);
	t->rest_until = period_clock();
	t->rest_until += t->rest_until - begin;
	return true;
}

/* The periods of a signal that was held back: what it interrupts is not where they passed. */
static void take_held(struct thread *t, uint64_t periods)
{
	periods += t->put_off;
	t->put_off = 0;
	settle_place(t, periods, REC_PLACE_HELD);
}

/* The signal of the thread's own timer or event. */
static void on_period(struct thread *t, const siginfo_t *si, const void *context, bool held)
{
	uint64_t periods;

	if (t->pid != agent.pid || !t->armed)
		return;
	/* The timer of a thread that ended, whose place another one has by now. */
	if (t->managed && t != agent_self())
		return;
	if (atomic_load_explicit(&agent.header->stop, memory_order_relaxed)) {
		if (!agent.sandboxed) /* else its timer goes on, for nothing */
			agent_disarm(t);
		return;
	}
	periods = ran_out(t, si);
	if (periods && held && !atomic_load_explicit(&t->open, memory_order_relaxed))
		take_held(t, periods);
	else if (periods && !take_in_turn(t, periods, context))
		return;
	if (agent.wall)
		spread(t, periods);
	if (!agent.sandboxed)
		event_open(t);
}

/*
 * Returns: false: it is none of the agent's. Periods without a sample are found when the thread
 * ends (settle.c).
 */
static __attribute__((noinline)) bool serve(const siginfo_t *si, const void *context, bool held)
{
	struct thread *t = from_timer(si);

	if (!t && event_sent(agent_self(), si))
		t = agent_self();
	if (!t && !from_recorder(si))
		return false;
	if (t && has_room(context, SAMPLE_NEED))
		on_period(t, si, context, held);
	else if (!t && !agent.sandboxed && has_room(context, SCAN_NEED))
		scan_threads();
	return true;
}

/*
 * A thread that begins a sandbox for all waits until none is here that did not know of it
 * (sandbox.c). The fence: either @sandboxed is seen here, or @handlers there.
 */
static bool serve_counted(const siginfo_t *si, const void *context, bool held)
{
	bool ours;

	if (agent.sandboxed)
		return serve(si, context, held);
	atomic_fetch_add(&agent.handlers, 1);
	atomic_thread_fence(memory_order_seq_cst);
	ours = serve(si, context, held);
	atomic_fetch_sub(&agent.handlers, 1);
	return ours;
}

/*
 * Whoever calls handlers himself, as some runtimes do, may not align the stack as the
 * kernel does.
 */
#if defined(__x86_64__)
__attribute__((force_align_arg_pointer))
#endif
static void
on_signal(int signo, siginfo_t *si, void *context)
{
	bool held = signals_held(context);

	signals_cut(context);
	if (!serve_counted(si, context, held))
		signals_chain(signo, si, context);
}

/* Emulators do not have all real-time signals. */
static bool timer_can_send(int signo)
{
	int timer;
	long ret = timer_make(CLOCK_MONOTONIC, signo, sys0(SYS_gettid), NULL, &timer);

	if (!ret)
		sys1(SYS_timer_delete, timer);
	/* Out of timers is not the signal's fault. */
	return ret != -EINVAL;
}

int handler_install(void)
{
	agent.frame = held_frame();
	return signals_take_own(on_signal, timer_can_send);
}
