// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * handler.c - the handler of the agent's signal, which comes from a thread's timer or event, from
 * the recorder, or from somebody else.
 */
#include <errno.h>
#include <sys/uio.h>
#include <ucontext.h>

#include "agent.h"

/*
 * Returns whether the alternate stack, if the handler runs on one, has @bytes left. It may be only
 * as large as the kernel's frame requires, and what lies below it is the program's.
 */
static bool has_room(const void *context, size_t bytes)
{
	const stack_t *stack = &((const ucontext_t *)context)->uc_stack;
	uintptr_t used_to = (uintptr_t)__builtin_frame_address(0);
	uintptr_t left = used_to - (uintptr_t)stack->ss_sp;

	return left >= bytes || left >= stack->ss_size;
}

static struct agent_thread *from_timer(const siginfo_t *si)
{
	uintptr_t at = (uintptr_t)si->si_value.sival_ptr;
	uintptr_t base = (uintptr_t)agent.threads;
	struct agent_thread *t;

	if (si->si_code != SI_TIMER || at < base || (at - base) % sizeof(*t) ||
	    (at - base) / sizeof(*t) >= agent.nr_slots)
		return NULL;
	return (struct agent_thread *)at;
}

static bool from_recorder(const siginfo_t *si)
{
	return si->si_code == SI_QUEUE && agent.header &&
	       (uint64_t)(uintptr_t)si->si_value.sival_ptr == agent.header->cookie;
}

/*
 * Returns whether the signal came at the end of a system call; it may have been sent during that
 * call.
 */
static bool in_system_call(const void *context)
{
#if defined(__x86_64__)
	const greg_t *r = ((const ucontext_t *)context)->uc_mcontext.gregs;

	/*
	 * The syscall instruction stores its return address in RCX. If the call is about to be
	 * restarted, RIP is 2 less than that.
	 */
	return r[REG_RCX] == r[REG_RIP] || r[REG_RCX] == r[REG_RIP] + 2;
#else
	struct iovec to, from;
	uint32_t code[2] = { 0, 0 };

	/* The code may be executable but not readable, or end here. */
	to = (struct iovec){ code, sizeof(code) };
	from = (struct iovec){ (void *)(((const ucontext_t *)context)->uc_mcontext.pc - 4),
			       sizeof(code) };
	if (sys6(SYS_process_vm_readv, agent.pid, (long)&to, 1, (long)&from, 1, 0) < 4)
		return false;
	return code[0] == 0xd4000001 || code[1] == 0xd4000001;
#endif
}

#define MANY_TICKS 50000000 /* ns */
#define MANY_PERIODS 8 /* fewer may be of the kernel, followed by the timer's signal */

/*
 * Returns whether @overrun periods ran out in the kernel, in a long call. Otherwise the program
 * held the timer's signal back. A short time is always taken to be the kernel's. Half of the time
 * is enough, because the kernel counts its time in ticks.
 */

static bool was_in_kernel(struct agent_thread *t, uint64_t overrun)
{
	uint64_t before = t->system;

	t->system = time_in_kernel();
	return overrun * agent.period < MANY_TICKS ||
	       (t->system - before) * 2 >= overrun * agent.period;
}

/*
 * Takes over the periods of ended threads that belong to the place where a tick found the thread. They
 * are none of its own, so its calls get as much more time. @here: how many of its own belong there.
 * @asked: this is the first tick in the thread.
 */
static uint64_t take_over(struct agent_thread *t, uint64_t here, bool in_call, bool asked,
			  uint64_t at)
{
	uint64_t lent = in_call && is_young(t) ? ended_lend(t->fn, &t->calls, here) : 0;
	uint64_t shared = asked ? ended_share(t->fn, at - t->calls.since, in_call) : 0;

	t->owed += lent + shared;
	if (in_call)
		t->calls.time += shared * agent.period;
	return lent + shared;
}

/*
 * Handles the timer's signal in a thread that has an event: periods that ran out without a signal
 * of the event were spent in the kernel. Returns the periods of the system call that the thread is
 * in. Periods of no system call are sampled here. @asked: this is the first tick in the thread.
 */
static uint64_t in_kernel(struct agent_thread *t, const siginfo_t *si, const void *context,
			  uint64_t at, bool asked)
{
	bool in_call = in_system_call(context);
	uint64_t silent, here;

	if (agent.sandboxed) /* the clock must not be read */
		return 0;
	silent = silent_periods(t, at);
	t->calls.left = 0;
	if (!was_in_kernel(t, (unsigned int)si->si_overrun)) {
		t->held += silent;
		return 0;
	}
	calls_count(&t->calls, in_call, at);
	here = calls_share(&t->calls, silent, in_call, agent.period);
	t->calls.left = silent - here;
	here += take_over(t, here, in_call, asked, at);
	if (in_call)
		return here;
	if (here)
		sample_place(t, here, REC_PLACE_KERNEL);
	return 0;
}

/*
 * Handles the event's signal, which reports one period in user mode. If more of its signals are
 * pending, this one was pending too: then it does not tell where the thread was, and its period is
 * added to the next sample. Returns the periods of this sample, or 0.
 */
static uint64_t in_user_mode(struct agent_thread *t, uint64_t at)
{
	if (agent.sandboxed)
		return !t->first_rest;
	if (event_is_late(t, at) || is_ahead(t, at))
		return 0;
	if (silent_periods(t, at) > t->calls.left + MANY_PERIODS && signal_is_held_back()) {
		t->held++;
		return 0;
	}
	t->first_end = 0;
	return 1;
}

/*
 * Handles the timer's signal in a thread without an event: all periods that ran out are those of the
 * place that it finds. Returns them. @asked: this is the first tick in the thread.
 */
static uint64_t at_tick(struct agent_thread *t, uint64_t at, bool asked)
{
	uint64_t periods = silent_periods(t, at), taken;

	calls_count(&t->calls, false, at);
	if (!asked)
		return periods;
	taken = ended_claim(t->fn, at - t->calls.since);
	t->owed += taken;
	return periods + taken;
}

/* Returns how many periods end with @signals of a timer that signals at each tick, in a sandbox. */
static uint64_t of_ticks(struct agent_thread *t, uint64_t signals)
{
	uint64_t time = t->part + signals * agent_interval(t);

	t->part = time % agent.period;
	return time / agent.period;
}

/*
 * Returns the periods that a signal stands for. In a sandbox no other event follows the first one.
 * @at is the time on the clock of the periods.
 */
static uint64_t ran_out(struct agent_thread *t, const siginfo_t *si, const void *context,
			uint64_t at)
{
	bool timer = si->si_code == SI_TIMER, asked = timer && t->asks;
	uint64_t signals = !asked + (uint64_t)(unsigned int)si->si_overrun;

	if (asked)
		t->asks = false;
	if (by_tick(t))
		return agent.sandboxed ? of_ticks(t, signals) : at_tick(t, at, asked);
	if (!t->event || (timer && agent.sandboxed && t->first_rest))
		return signals * t->stretch;
	if (!timer)
		return in_user_mode(t, at);
	return in_kernel(t, si, context, at, asked);
}

/*
 * The most samples a second of threads that hardly ran since their last sample. With wall-clock
 * time each sample wakes up a thread that waits, and thousands of such threads would leave the
 * program no CPU time. Each sample stands for more time then.
 */
#define MOST_OF_WAITING 4000

static void spread(struct agent_thread *t, uint64_t periods)
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

/* Returns the time on the clock by which the periods end; in a sandbox it must not be read. */
static uint64_t period_clock(void)
{
	return agent.sandboxed ? 0 : now(agent_clock());
}

/*
 * Takes a sample, unless the thread must run first. A sample may take longer than a period if the
 * stack is deep and has no unwind rules, or if the machine has too little CPU time. Then the next
 * signal is already pending when the handler ends, and the program would make no progress. So the
 * thread first runs for as long as the sample took. The periods that end meanwhile, and those that
 * were held back, are in the weight of the next sample that is taken. @begin is the time at which
 * the signal came. Returns whether a sample was taken.
 */
static bool take_in_turn(struct agent_thread *t, uint64_t periods, bool of_event,
			 const void *context, uint64_t begin)
{
	if (agent.sandboxed) { /* there is no time */
		sample_take(t, periods, context);
		return true;
	}
	if (begin < t->rest_until && !atomic_load_explicit(&t->open, memory_order_relaxed)) {
		/*
		 * Periods that no signal of an event reported are found again as unsampled periods.
		 */
		t->put_off += of_event || !t->event ? periods : 0;
		return false;
	}
	if (of_event || !t->event) {
		periods += t->put_off + (of_event ? t->held : 0);
		t->put_off = 0;
	} else {
		t->calls.taken += periods;
	}
	sample_take(t, periods, context);
	t->rest_until = period_clock();
	t->rest_until += t->rest_until - begin;
	return true;
}

/*
 * Takes a sample without a stack for a signal that was held back, perhaps with others behind it.
 * The place that it interrupts is not where its @periods were spent. With an event, @periods are
 * not all that is in no sample.
 */
static void take_held(struct agent_thread *t, uint64_t periods, uint64_t at)
{
	if (t->event && !agent.sandboxed)
		periods = unsampled_periods(t, at);
	else
		periods += t->put_off;
	t->put_off = t->held = 0;
	if (periods)
		sample_place(t, periods, REC_PLACE_HELD);
}

/* Handles the signal of the thread's own timer or event. */
static void on_period(struct agent_thread *t, const siginfo_t *si, const void *context, bool held)
{
	uint64_t periods, at;

	if (t->pid != agent.pid || !t->armed)
		return;
	/*
	 * The timer may be that of a thread that ended and whose entry another thread has by now.
	 */
	if (t->managed && t != agent_self())
		return;
	if (atomic_load_explicit(&agent.header->stop, memory_order_relaxed)) {
		if (!agent.sandboxed) /* in a sandbox the timer goes on without effect */
			agent_disarm(t);
		return;
	}
	held &= !atomic_load_explicit(&t->open, memory_order_relaxed);
	at = period_clock();
	periods = held && t->event && !agent.sandboxed ? 0 : ran_out(t, si, context, at);
	if (held)
		take_held(t, periods, at);
	else if (periods && !take_in_turn(t, periods, si->si_code != SI_TIMER, context, at))
		return;
	if (agent.wall)
		spread(t, periods);
	/*
	 * Opening the event takes a part of a millisecond, which the interrupted function has on its
	 * clock. At the end of a period in user mode nothing else is owed.
	 */
	if (!agent.sandboxed && event_open(t) && t->owed && periods && !held &&
	    si->si_code != SI_TIMER)
		sample_take(t, t->owed, context);
}

bool handler_is_ours(const siginfo_t *si)
{
	return from_timer(si) || event_late(si) || from_recorder(si) || is_knock(si);
}

/*
 * Handles a signal that may be the agent's. Returns false if it is not. Periods without a sample
 * are found when the thread ends (settle.c).
 */
static __attribute__((noinline)) bool serve(const siginfo_t *si, const void *context, bool held)
{
	struct agent_thread *t = from_timer(si);

	if (!t && event_sent(agent_self(), si))
		t = agent_self();
	if (!t && !from_recorder(si))
		return event_late(si) || is_knock(si);
	if (t && has_room(context, SAMPLE_NEED))
		on_period(t, si, context, held);
	else if (!t && !agent.sandboxed && has_room(context, SCAN_NEED))
		scan_threads();
	return true;
}

/*
 * Calls serve(), and counts this thread in agent.handlers meanwhile. A thread that begins a sandbox
 * for all threads waits until no handler runs that did not know of it (in_sandbox.c). Because of
 * the fence, either @sandboxed is seen here, or @handlers is seen there.
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
 * Gives the thread a timer with the agent's current signal, if its timer began before the agent
 * took that signal. This is for threads that the agent did not see begin.
 */
static void bring_along(const siginfo_t *si)
{
	struct agent_thread *t = from_timer(si);

	if (t && t->pid == agent.pid && t->armed && t->slot->signo != (uint32_t)agent.signo &&
	    !local.signo && !in_sandbox())
		agent_retime(t, agent.signo);
}

/*
 * A program that calls handlers itself, as some runtimes do, may not align the stack as the kernel
 * does.
 */
#if defined(__x86_64__)
#define ALIGNS_STACK __attribute__((force_align_arg_pointer))
#else
#define ALIGNS_STACK
#endif

ALIGNS_STACK static void on_signal(int signo, siginfo_t *si, void *context)
{
	ksigset *mask = (void *)&((ucontext_t *)context)->uc_sigmask;
	bool held = signals_held(context);

	signals_cut(context);
	if (serve_counted(si, context, held)) {
		if (unlikely(local.knocking))
			signals_knocked(context);
		if (unlikely(is_knock(si)))
			wait_knock_again();
		bring_along(si);
		move_in_handler(mask);
	} else if (!move_for(signo, si, mask)) {
		signals_chain(signo, si, context);
	}
}

ALIGNS_STACK bool handler_take_stray(int signo, siginfo_t *si, void *context)
{
	if (!handler_is_ours(si))
		return false;
	on_signal(signo, si, context);
	return true;
}

/* Returns whether a timer can send @signo. Emulators do not have all real-time signals. */
static bool timer_can_send(int signo)
{
	int timer;
	long ret = timer_make(CLOCK_MONOTONIC, signo, sys0(SYS_gettid), NULL, &timer);

	if (!ret)
		sys1(SYS_timer_delete, timer);
	/* Another error, such as too few timers, has nothing to do with the signal. */
	return ret != -EINVAL;
}

int handler_install(void)
{
	agent.frame = held_frame();
	return signals_take_own(on_signal, timer_can_send);
}
