// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * signals.c - the program's handlers and masks, beside the agent's signal.
 *
 * To the program the agent's signal looks like any other: what the program blocks, takes and waits
 * for is stored and reported as it was set. In fact the signal is hardly ever blocked, not even in
 * handlers with a full sa_mask, so that they are sampled. The program's own action for it is called
 * when somebody else sends it.
 *
 * All handlers of the program are entered through enter(), which does three things:
 *
 * - In a handler that may run on an alternate stack the agent's signal is blocked; enter() unblocks
 *   it if there is room (hold_back.c).
 *
 * - In a handler that runs during a call that waits (wait.c) the agent's signal is blocked; enter()
 *   unblocks it.
 *
 * - A signal of the program may come while the agent's handler runs, after the agent's signal
 *   interrupted a system call that the kernel is to restart. The program's handler is entered just
 *   before the restart. If it has no SA_RESTART it is to end the call, but the kernel would restart
 *   the call, which would then wait for a signal that has already come. enter() recognizes this by
 *   the context, and makes the call fail with EINTR:
 *
 *	read() waits
 *	agent's signal: context is "make the call", pc at the instruction -> local.cuts
 *	program's signal becomes pending, as the agent's handler blocks all
 *	agent's handler returns; the program's is entered, with the very same context
 *	enter(): "EINTR" becomes the context
 *
 *   More signals of the agent, and handlers of the program with calls of their own, may
 *   come before enter() has looked: so more than one call is kept.
 *
 * The agent does not know a handler that the program installs by a system call of its own.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/signalfd.h>
#include <ucontext.h>

#include "../common/peek.h"
#include "../common/room.h"
#include "agent.h"

#define NR_SIGNALS 65

__thread struct agent_local local;

/* The action that the program believes the agent's signal to have. */
static struct sigaction believed_action;

/*
 * The agent's handler, and the set of signals that were the agent's and are the program's again
 * (move.c).
 */
static void (*agent_handler)(int signo, siginfo_t *si, void *context);
static _Atomic uint64_t left;

/**
 * struct program_action - a handler of the program
 * @handler: its function.
 * @flags: its sa_flags.
 * @masks_own: its sa_mask has the agent's signal.
 */
struct program_action {
	_Atomic(void (*)(int, siginfo_t *, void *)) handler;
	_Atomic int flags;
	bool masks_own;
};

static struct program_action actions[NR_SIGNALS];

/* Guards @actions and the action of SIGIO against other threads; taken with all signals blocked. */
static _Atomic int actions_lock;

static struct {
	int (*sigaction)(int, const struct sigaction *, struct sigaction *);
	int (*sigprocmask)(int, const sigset_t *, sigset_t *);
	int (*pthread_sigmask)(int, const sigset_t *, sigset_t *);
	int (*signalfd)(int, const sigset_t *, int);
	sighandler_t (*signal)(int, sighandler_t);
	sighandler_t (*sysv_signal)(int, sighandler_t);
	int (*siginterrupt)(int, int);
} next_signal;

#define RESOLVE(member, name) (*(void **)&next_signal.member = next_symbol(name))
#define NEXT(member, name) \
	(next_signal.member ? next_signal.member : (RESOLVE(member, name), next_signal.member))

static bool has_glibc;

void signals_resolve(void)
{
	RESOLVE(sigaction, "sigaction");
	RESOLVE(sigprocmask, "sigprocmask");
	RESOLVE(pthread_sigmask, "pthread_sigmask");
	RESOLVE(signalfd, "signalfd");
	RESOLVE(signal, "signal");
	RESOLVE(sysv_signal, "__sysv_signal");
	RESOLVE(siginterrupt, "siginterrupt");
	has_glibc = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
}

/*
 * Returns whether the kernel restarts call @nr after a handler with SA_RESTART, and ends it with
 * EINTR after a handler without (signal(7)). A context has no more than the number.
 */
static bool is_restarted(uint64_t nr)
{
	switch (nr) {
	case SYS_read:
	case SYS_readv:
	case SYS_preadv:
	case SYS_preadv2:
	case SYS_write:
	case SYS_writev:
	case SYS_pwritev:
	case SYS_pwritev2:
	case SYS_pread64:
	case SYS_pwrite64:
	case SYS_ioctl:
	case SYS_openat:
	case SYS_openat2:
	case SYS_wait4:
	case SYS_waitid:
	case SYS_accept:
	case SYS_accept4:
	case SYS_connect:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_sendfile:
	case SYS_splice:
	case SYS_tee:
	case SYS_vmsplice:
	case SYS_flock:
	case SYS_fcntl:
	case SYS_mq_timedsend:
	case SYS_mq_timedreceive:
	case SYS_futex:
	case SYS_futex_waitv:
	case SYS_getrandom:
#ifdef SYS_open
	case SYS_open:
#endif
		return true;
	default:
		return false;
	}
}

#if defined(__x86_64__)
/* For functions that run on a stack that may not be aligned as 16-byte registers need it. */
#define GENERAL_REGS_ONLY __attribute__((target("general-regs-only")))

/*
 * Returns whether the context is that of a call about to be restarted. The syscall instruction
 * stores the address behind itself in rcx: if pc is at the instruction and rcx behind it, it was
 * just executed.
 */
static bool restarts(const ucontext_t *uc)
{
	const greg_t *regs = uc->uc_mcontext.gregs;

	return regs[REG_RCX] == regs[REG_RIP] + 2 && is_restarted(regs[REG_RAX]);
}

static bool may_restart(const ucontext_t *uc)
{
	return restarts(uc);
}

static void fail_with_eintr(ucontext_t *uc)
{
	uc->uc_mcontext.gregs[REG_RIP] += 2;
	uc->uc_mcontext.gregs[REG_RAX] = -EINTR;
}

/* Returns whether the context is that of a call that a signal has just ended. */
static bool was_ended(const ucontext_t *uc)
{
	const greg_t *regs = uc->uc_mcontext.gregs;

	return regs[REG_RCX] == regs[REG_RIP] && regs[REG_RAX] == -EINTR;
}

#define NR_GENERAL REG_RSP /* the registers before it, and it */
#define GENERAL(uc, i) ((uint64_t)(uc)->uc_mcontext.gregs[i])
#define CONTEXT_PC(uc) ((uint64_t)(uc)->uc_mcontext.gregs[REG_RIP])
#define CONTEXT_SP(uc) ((uint64_t)(uc)->uc_mcontext.gregs[REG_RSP])
#elif defined(__aarch64__)
#define GENERAL_REGS_ONLY

/*
 * Returns whether the context may be that of a call about to be restarted. It does not read the
 * code, which may be executable but not readable, and any signal may come here.
 */
static bool may_restart(const ucontext_t *uc)
{
	return is_restarted(uc->uc_mcontext.regs[8]);
}

/*
 * Returns whether the context is that of a call about to be restarted: its instruction is svc #0.
 */
static bool restarts(const ucontext_t *uc)
{
	return may_restart(uc) && *(const uint32_t *)uc->uc_mcontext.pc == 0xd4000001;
}

static void fail_with_eintr(ucontext_t *uc)
{
	uc->uc_mcontext.pc += 4;
	uc->uc_mcontext.regs[0] = -EINTR;
}

/* Returns whether the context is that of a call that a signal has just ended. */
static bool was_ended(const ucontext_t *uc)
{
	return uc->uc_mcontext.regs[0] == (uint64_t)-EINTR &&
	       *(const uint32_t *)(uc->uc_mcontext.pc - 4) == 0xd4000001;
}

#define NR_GENERAL 31
#define GENERAL(uc, i) ((uc)->uc_mcontext.regs[i])
#define CONTEXT_PC(uc) ((uc)->uc_mcontext.pc)
#define CONTEXT_SP(uc) ((uc)->uc_mcontext.sp)
#else
#error "what does the context of a system call about to be restarted look like?"
#endif

#define NR_CUTS (sizeof(local.cuts) / sizeof(local.cuts[0]))

void signals_cut(const void *context)
{
	const ucontext_t *uc = context;

	if (may_restart(uc))
		local.cuts[local.nr_cuts++ % NR_CUTS] =
			(struct cut_call){ CONTEXT_PC(uc), CONTEXT_SP(uc) };
}

GENERAL_REGS_ONLY static bool was_cut(const ucontext_t *uc)
{
	for (unsigned int i = 0; i < NR_CUTS; i++)
		if (local.cuts[i].pc == CONTEXT_PC(uc) && local.cuts[i].sp == CONTEXT_SP(uc))
			return true;
	return false;
}

/* Makes the call fail that the agent's signal interrupted and that this handler is to end. */
GENERAL_REGS_ONLY static void end_call(int flags, ucontext_t *uc)
{
	if (!(flags & SA_RESTART) && was_cut(uc) && restarts(uc))
		fail_with_eintr(uc);
}

/*
 * The kernel has ended the call already if it never restarts it, or if it has moved something.
 * Otherwise it restarts the call, which is undone where the program's handler had no SA_RESTART.
 * With SA_RESTART the call goes on, with the agent's signal blocked. Calls that this object makes
 * before it are not that call.
 */
GENERAL_REGS_ONLY void signals_knocked(void *context)
{
	ucontext_t *uc = context;
	bool waits = may_restart(uc) && restarts(uc);

	if (is_agent_code(CONTEXT_PC(uc)) || (!waits && !was_ended(uc)))
		return;
	local.knocking = false;
	if (waits && local.handler_ends)
		fail_with_eintr(uc);
	*(ksigset *)&uc->uc_sigmask = local.knock_mask | agent_sigset();
}

/*
 * Ends the knocking in a handler of the program, for a signal that is not held back meanwhile: the
 * handler runs with the mask that it has without the agent, but for the agent's signal.
 */
GENERAL_REGS_ONLY static __attribute__((noinline)) void stop_knocking(int signo, ucontext_t *uc)
{
	struct kernel_action act;
	ksigset mask;

	signals_knocked(uc);
	local.knocking = false;
	*(ksigset *)&uc->uc_sigmask = local.knock_mask | agent_sigset();
	if (sys4(SYS_rt_sigaction, signo, NULL, &act, sizeof(act.mask)))
		return;
	mask = local.knock_mask | act.mask;
	if (!(act.flags & SA_NODEFER))
		mask |= (ksigset)1 << (signo - 1);
	mask &= ~agent_sigset();
	sys4(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
}

/*
 * Returns the state of a thread as a number, never 0. If it is the same, the thread made no step.
 */
GENERAL_REGS_ONLY static uint64_t state_of(const ucontext_t *uc)
{
	uint64_t number = 0;

	for (int i = 0; i < NR_GENERAL; i++)
		number = (number ^ GENERAL(uc, i)) * 0x9e3779b97f4a7c15ULL;
	number = (number ^ CONTEXT_PC(uc)) * 0x9e3779b97f4a7c15ULL ^ CONTEXT_SP(uc);
	return number | 1;
}

bool signals_held(const void *context)
{
	bool held = local.was_cramped || (local.held_at && local.held_at == state_of(context));

	local.held_at = 0;
	local.was_cramped = false;
	return held;
}

/*
 * Unblocks the agent's signal at the beginning of a handler, unless the handler is on an alternate
 * stack that has no room for it (hold_back.c), or no system call may be made.
 */
GENERAL_REGS_ONLY static void begin_handler(const ucontext_t *uc)
{
	uintptr_t start = (uintptr_t)uc->uc_stack.ss_sp, size = uc->uc_stack.ss_size;
	uintptr_t left = (uintptr_t)__builtin_frame_address(0) - start;

	bool small = left < size && left < ROOM_PLENTY;

	if (small) {
		local.held.lo = start;
		local.held.hi = start + size;
	}
	if (small || local.cramped)
		local.held_at = state_of(uc);
	else if (may_mask())
		change_agent_signal(SIG_UNBLOCK);
}

/*
 * Notes that a handler begins, for signals_masked(). The frame of one that has ended may be that of this one. Nothing
 * tells when it ends.
 */
GENERAL_REGS_ONLY static void note_masking(const struct program_action *a, const ucontext_t *uc)
{
	if (a->masks_own) {
		local.masking.context = uc;
		local.masking.state = state_of(uc);
	} else if (local.masking.context == uc) {
		local.masking.context = NULL;
	}
}

/* Returns whether the general registers of a context that was noted can be read. */
static bool is_readable(const ucontext_t *uc)
{
	char byte;

	return peek(&byte, &uc->uc_mcontext, 1) && peek(&byte, &uc->uc_mcontext + 1, 1);
}

/*
 * The handler that was noted has not ended if its frame is as it was, and the code that it interrupted is where a
 * signal interrupted this stack.
 */
bool signals_masked(void)
{
	const ucontext_t *uc = local.masking.context;
	struct shstk_opts opts = { .size = sizeof(opts) };
	uint8_t marks[NEAR_CALLERS];
	uint64_t pcs[NEAR_CALLERS];
	int n;

	if (likely(!uc))
		return false;
	opts.marks = marks;
	n = shstk_capture(pcs, NEAR_CALLERS, &opts, NULL);
	if (!is_readable(uc) || state_of(uc) != local.masking.state)
		return false;
	for (int i = 0; i < n; i++)
		if (marks[i] & SHSTK_MARK_PC && pcs[i] == CONTEXT_PC(uc))
			return true;
	return false;
}

/*
 * Enters a handler of the program. It is left by a tail call, so that stacks look as they do
 * without the agent. It uses only general registers and no memory that would need an aligned stack,
 * because a program that calls handlers itself may not align it.
 */
GENERAL_REGS_ONLY static void enter(int signo, siginfo_t *si, void *context)
{
	const struct program_action *a = &actions[signo];
	void (*handler)(int, siginfo_t *, void *) =
		atomic_load_explicit(&a->handler, memory_order_acquire);
	int flags = atomic_load_explicit(&a->flags, memory_order_relaxed);

	if (unlikely(atomic_load_explicit(&left, memory_order_relaxed) >> (signo - 1) & 1) &&
	    handler_take_stray(signo, si, context))
		return;
	/* Another thread is just setting another action for a signal that was the agent's. */
	if (unlikely((uintptr_t)handler <= (uintptr_t)SIG_IGN)) {
		agent_handler(signo, si, context);
		return;
	}
	if (local.waits_in || flags & SA_ONSTACK)
		begin_handler(context);
	if (unlikely(a->masks_own || local.masking.context))
		note_masking(a, context);
	local.waits_in = NULL;
	if (unlikely(local.knocking))
		stop_knocking(signo, context);
	if (!(flags & SA_RESTART))
		local.handler_ends = true;
	if (local.nr_cuts)
		end_call(flags, context);
	handler(signo, si, context);
}

/* The action of SIGIO if the program has none (thread_event.c). */
static struct sigaction guard = { .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK };
static _Atomic bool guarding;

static void on_io(int signo, siginfo_t *si, void *context)
{
	ksigset one = (ksigset)1 << (signo - 1);
	struct sigaction action = { .sa_handler = SIG_DFL };

	(void)context;
	/* The kernel sends SIGIO with this code instead of the agent's signal. */
	if (si->si_code == SI_KERNEL)
		return;
	next_signal.sigaction(signo, &action, NULL);
	sys2(SYS_tkill, sys0(SYS_gettid), signo);
	sys4(SYS_rt_sigprocmask, SIG_UNBLOCK, &one, NULL, sizeof(one));
}

/*
 * Sets the guard if the program has no action for SIGIO. Called with the lock. signal() and similar
 * calls set their action without the lock; if one was set meanwhile, it is put back. Returns false
 * on failure.
 */
static bool set_guard(void)
{
	struct sigaction old;

	memset(&guard.sa_mask, 0xff, sizeof(guard.sa_mask));
	guard.sa_sigaction = on_io;
	if (next_signal.sigaction(SIGIO, NULL, &old))
		return false;
	if (old.sa_handler != SIG_DFL)
		return true;
	if (next_signal.sigaction(SIGIO, &guard, &old))
		return false;
	return old.sa_handler == SIG_DFL || !next_signal.sigaction(SIGIO, &old, NULL);
}

/* This runs in the agent's handler, so it does not wait for the lock. */
bool signals_guard_io(void)
{
	int free = 0;

	if (atomic_load(&guarding))
		return true;
	if (!atomic_compare_exchange_strong(&actions_lock, &free, 1))
		return false;
	if (set_guard())
		atomic_store(&guarding, true);
	atomic_store(&actions_lock, 0);
	return atomic_load(&guarding);
}

static bool wants_guard(int signo, const struct sigaction *act)
{
	return signo == SIGIO && act && act->sa_handler == SIG_DFL && atomic_load(&guarding);
}

/*
 * Signals whose action was set by the calls below before the agent was on. As exec left no
 * handlers, the others need not be read, which took 190 system calls.
 */
static _Atomic uint64_t set_early;

static void note_early(int signo)
{
	if (!agent.on && signo > 0 && signo < NR_SIGNALS)
		atomic_fetch_or(&set_early, (uint64_t)1 << (signo - 1));
}

static bool was_left(int signo)
{
	return atomic_load_explicit(&left, memory_order_relaxed) >> (signo - 1) & 1;
}

/* Returns whether the action has a handler of the program's own. */
static bool is_handler(const struct sigaction *act)
{
	return act->sa_handler != SIG_DFL && act->sa_handler != SIG_IGN &&
	       act->sa_sigaction != on_io && act->sa_sigaction != agent_handler;
}

static bool is_enter(const struct sigaction *act)
{
	return act->sa_sigaction == enter;
}

/* Changes @act, the action that the kernel has, to what the program believes it is. */
static void translate(struct sigaction *act, const struct program_action *a)
{
	if (act->sa_sigaction == on_io)
		*act = (struct sigaction){ .sa_handler = SIG_DFL };
	if (agent_handler && act->sa_sigaction == agent_handler)
		*act = (struct sigaction){
			.sa_sigaction = atomic_load_explicit(&a->handler, memory_order_relaxed),
			.sa_flags = atomic_load_explicit(&a->flags, memory_order_relaxed),
		};
	/* SA_RESETHAND removes the handler, but leaves the flags. */
	if (act->sa_handler == SIG_DFL && act->sa_flags & SA_RESETHAND &&
	    !(atomic_load_explicit(&a->flags, memory_order_relaxed) & SA_SIGINFO))
		act->sa_flags &= ~SA_SIGINFO;
	if (!is_enter(act))
		return;
	act->sa_sigaction = atomic_load_explicit(&a->handler, memory_order_relaxed);
	if (!(atomic_load_explicit(&a->flags, memory_order_relaxed) & SA_SIGINFO))
		act->sa_flags &= ~SA_SIGINFO;
	if (a->masks_own)
		sigaddset(&act->sa_mask, agent.signo);
	else
		sigdelset(&act->sa_mask, agent.signo);
}

static void publish(struct program_action *a, const struct program_action *from)
{
	a->masks_own = from->masks_own;
	atomic_store_explicit(&a->flags, from->flags, memory_order_relaxed);
	atomic_store_explicit(&a->handler, from->handler, memory_order_release);
}

static ksigset lock(void)
{
	ksigset old = block_signals();
	int free = 0;

	while (!atomic_compare_exchange_weak(&actions_lock, &free, 1)) {
		free = 0;
		sys0(SYS_sched_yield);
	}
	return old;
}

static void unlock(ksigset old)
{
	atomic_store(&actions_lock, 0);
	restore_signals(old);
}

/* Sets the program's handler @act. Called with the lock. Returns what sigaction() returns. */
static int set_handler(int signo, const struct sigaction *act, struct sigaction *was)
{
	struct program_action *a = &actions[signo], before = *a;
	struct program_action now = { .handler = act->sa_sigaction,
				      .flags = act->sa_flags,
				      .masks_own = sigismember(&act->sa_mask, agent.signo) };
	struct sigaction real = *act;
	int ret;

	real.sa_sigaction = enter;
	real.sa_flags |= SA_SIGINFO;
	if (act->sa_flags & SA_ONSTACK)
		sigaddset(&real.sa_mask, agent.signo);
	else
		sigdelset(&real.sa_mask, agent.signo);
	publish(a, &now);
	ret = next_signal.sigaction(signo, &real, was);
	if (ret)
		publish(a, &before);
	else
		translate(was, &before);
	return ret;
}

/* Returns the action that has the agent's handler. */
static struct sigaction front(void)
{
	struct sigaction action = {
		.sa_sigaction = agent_handler,
		.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK,
	};

	/* The mask also has the signals that libc reserves, which sigfillset() leaves out. */
	memset(&action.sa_mask, 0xff, sizeof(action.sa_mask));
	return action;
}

/*
 * While a program is executed, which gets what this program ignores, the kernel ignores those signals that are
 * or were the agent's and that the program ignores; otherwise it has the agent's handler for them. Threads
 * change the first of these without the lock, and look at what the program ignores after that. Whoever changes
 * what the program ignores looks at the threads after that.
 *
 * @handing_on is the number of threads that execute a program; @kept_ignored are the signals that the kernel
 * ignores for them, which are changed with the lock.
 */
static _Atomic int handing_on;
static _Atomic ksigset kept_ignored;

/* Returns whether the program ignores a signal for which the agent's handler is to be in front. */
static bool is_ignored(int signo)
{
	if (signo == agent.signo)
		return believed_action.sa_handler == SIG_IGN;
	return was_left(signo) && atomic_load_explicit(&actions[signo].handler,
						       memory_order_relaxed) == (void *)SIG_IGN;
}

/* Changes the kernel's action, if it is @from, to @to. */
static void exchange_action(int signo, const struct sigaction *from, const struct sigaction *to)
{
	struct sigaction is;

	if (!next_signal.sigaction(signo, NULL, &is) && is.sa_sigaction == from->sa_sigaction)
		next_signal.sigaction(signo, to, NULL);
}

static bool is_to_be_ignored(int signo)
{
	return atomic_load(&handing_on) && is_ignored(signo);
}

/*
 * Has the kernel ignore a signal if that is to be, or not any more. Called with the lock. The last thread may end
 * meanwhile: it has either seen @kept_ignored, or its end is seen here.
 */
static void adjust(int signo)
{
	const struct sigaction ours = front(), ignore = { .sa_handler = SIG_IGN };
	const ksigset one = (ksigset)1 << (signo - 1);

	if (is_to_be_ignored(signo)) {
		kept_ignored |= one;
		exchange_action(signo, &ours, &ignore);
	}
	if (kept_ignored & one && !is_to_be_ignored(signo)) {
		exchange_action(signo, &ignore, &ours);
		kept_ignored &= ~one;
	}
}

/*
 * Sets the agent's handler as the kernel's action where the program has no handler. Called with the
 * lock.
 */
static void keep_in_front(int signo, const struct sigaction *act)
{
	struct program_action now = { .handler = act->sa_sigaction, .flags = act->sa_flags };
	const struct sigaction real = front();

	publish(&actions[signo], &now);
	next_signal.sigaction(signo, &real, NULL);
	adjust(signo);
}

/*
 * Returns false in the child of a vfork(), which shares this memory but not the kernel's actions.
 */
static bool is_agents_process(void)
{
	return agent.pid == (int)sys0(SYS_getpid);
}

static bool may_wrap(int signo)
{
	return agent.on && !in_sandbox() && signo > 0 && signo < NR_SIGNALS && is_agents_process();
}

/* Takes over a handler that was set in another way than by sigaction(). */
static void adopt(int signo)
{
	ksigset old = lock();
	struct sigaction act, was;

	if (next_signal.sigaction(signo, NULL, &act)) {
		unlock(old);
		return;
	}
	if (is_handler(&act)) {
		if (!is_enter(&act))
			set_handler(signo, &act, &was);
		else if ((act.sa_flags ^ actions[signo].flags) & SA_RESTART)
			actions[signo].flags ^= SA_RESTART;
	} else if (wants_guard(signo, &act)) {
		next_signal.sigaction(signo, &guard, NULL);
	} else if (was_left(signo) && act.sa_sigaction != agent_handler) {
		keep_in_front(signo, &act);
	}
	unlock(old);
}

void signals_adopt(void)
{
	uint64_t early = atomic_load(&set_early);

	for (int signo = 1; signo < NR_SIGNALS; signo++)
		if (signo != agent.signo && early >> (signo - 1) & 1)
			adopt(signo);
}

static void set_own_action(const struct sigaction *act)
{
	ksigset mask;

	believed_action = *act;
	agent.shared = is_handler(act);
	atomic_thread_fence(memory_order_seq_cst);
	if (likely(!atomic_load(&handing_on)))
		return;
	mask = lock();
	adjust(agent.signo);
	unlock(mask);
}

static void change_own_action(const struct sigaction *act, struct sigaction *old)
{
	*old = believed_action;
	if (act)
		set_own_action(act);
}

bool signals_were_left(int signo)
{
	return signo > 0 && signo < NR_SIGNALS && was_left(signo);
}

void signals_translate(int signo, struct sigaction *act)
{
	if (signo == agent.signo)
		*act = believed_action;
	else if (signo > 0 && signo < NR_SIGNALS)
		translate(act, &actions[signo]);
}

/*
 * Returns whether @signo is the agent's signal. It is not in the child of a vfork(), which has no
 * timers and whose actions are its own.
 */
static bool is_agents(int signo)
{
	return agent.on && signo == agent.signo && is_agents_process();
}

int signals_action(int signo, const struct sigaction *act, struct sigaction *old)
{
	struct sigaction copy, was;
	ksigset mask;
	int ret;

	/*
	 * This reads @act as libc does: with a bad pointer there is a signal, which the program may
	 * handle.
	 */
	if (act) {
		copy = *act;
		act = &copy;
	}
	if (act && is_agents(signo) && is_handler(act))
		move_away();
	if (is_agents(signo)) {
		change_own_action(act, &was);
		if (old)
			*old = was;
		return 0;
	}
	if (!may_wrap(signo)) {
		if (act)
			note_early(signo);
		ret = NEXT(sigaction, "sigaction")(signo, act, old);
		if (!ret && old)
			signals_translate(signo, old);
		return ret;
	}
	mask = lock();
	if (wants_guard(signo, act))
		act = &guard;
	if (act && is_handler(act) && !is_enter(act)) {
		ret = set_handler(signo, act, &was);
	} else if (act && was_left(signo)) {
		ret = next_signal.sigaction(signo, NULL, &was);
		translate(&was, &actions[signo]);
		keep_in_front(signo, act);
	} else {
		ret = next_signal.sigaction(signo, act, &was);
		if (!ret)
			translate(&was, &actions[signo]);
	}
	unlock(mask);
	if (!ret && old)
		*old = was;
	return ret;
}

HOOK_API int sigaction(int signo, const struct sigaction *act, struct sigaction *old)
{
	return signals_action(signo, act, old);
}

/*
 * Returns the program's handler. The older calls set handlers inside libc, so what they have to
 * return is looked up before.
 */
static sighandler_t handler_of(int signo)
{
	return signo > 0 && signo < NR_SIGNALS ?
		       (sighandler_t)(void *)atomic_load(&actions[signo].handler) :
		       SIG_DFL;
}

static bool is_function(sighandler_t handler)
{
	return handler != SIG_DFL && handler != SIG_IGN && handler != SIG_HOLD &&
	       handler != SIG_ERR;
}

static sighandler_t set_own(sighandler_t handler, int flags)
{
	struct sigaction act = { .sa_handler = handler, .sa_flags = flags };
	sighandler_t old = believed_action.sa_handler;

	set_own_action(&act);
	return old;
}

#define SET_BY(member, name, own_flags)                                                     \
	({                                                                                  \
		sighandler_t before_, old_;                                                 \
                                                                                            \
		if (is_agents(signo) && is_function(handler))                               \
			move_away();                                                        \
		before_ = handler_of(signo);                                                \
                                                                                            \
		if (handler != SIG_ERR && is_agents(signo)) {                               \
			old_ = set_own(handler, own_flags);                                 \
		} else {                                                                    \
			note_early(signo);                                                  \
			old_ = NEXT(member, name)(signo, handler);                          \
			if (old_ == (sighandler_t)(void *)enter ||                          \
			    (agent_handler && old_ == (sighandler_t)(void *)agent_handler)) \
				old_ = before_;                                             \
			else if (old_ == (sighandler_t)(void *)on_io)                       \
				old_ = SIG_DFL;                                             \
			if (old_ != SIG_ERR && may_wrap(signo))                             \
				adopt(signo);                                               \
		}                                                                           \
		old_;                                                                       \
	})

/*
 * Signals for which the program has last called siginterrupt() while the kernel had the agent's handler, so
 * that libc does not know of it, and those of them whose handlers are to end calls. Both are sets.
 */
static _Atomic uint64_t untold, interrupting;

static int set_interrupt(int signo, int interrupt);

/* signal() of glibc does what siginterrupt() has asked for. That of musl does not know of it. */
HOOK_API sighandler_t signal(int signo, sighandler_t handler)
{
	sighandler_t old = SET_BY(signal, "signal", SA_RESTART);

	if (old != SIG_ERR && is_function(handler) &&
	    unlikely(atomic_load(&untold) >> (signo - 1) & 1) && has_glibc)
		set_interrupt(signo, atomic_load(&interrupting) >> (signo - 1) & 1);
	return old;
}

HOOK_API sighandler_t bsd_signal(int signo, sighandler_t handler)
{
	return signal(signo, handler);
}

HOOK_API sighandler_t ssignal(int signo, sighandler_t handler)
{
	return signal(signo, handler);
}

sighandler_t __sysv_signal(int signo, sighandler_t handler);

HOOK_API sighandler_t __sysv_signal(int signo, sighandler_t handler)
{
	return SET_BY(sysv_signal, "__sysv_signal", SA_RESETHAND | SA_NODEFER);
}

HOOK_API sighandler_t sysv_signal(int signo, sighandler_t handler)
{
	return __sysv_signal(signo, handler);
}

static int change_one(int how, int signo, sigset_t *old);

/* libc's function sets action and mask without any hook, and so do those below. */
HOOK_API sighandler_t sigset(int signo, sighandler_t handler)
{
	const bool holds = handler == SIG_HOLD;
	const struct sigaction act = { .sa_handler = handler };
	struct sigaction old;
	sigset_t before;

	if (signals_action(signo, holds ? NULL : &act, &old) ||
	    change_one(holds ? SIG_BLOCK : SIG_UNBLOCK, signo, &before))
		return SIG_ERR;
	return sigismember(&before, signo) ? SIG_HOLD : old.sa_handler;
}

HOOK_API int sigignore(int signo)
{
	const struct sigaction act = { .sa_handler = SIG_IGN };

	return signals_action(signo, &act, NULL);
}

HOOK_API int sighold(int signo)
{
	return change_one(SIG_BLOCK, signo, NULL);
}

HOOK_API int sigrelse(int signo)
{
	return change_one(SIG_UNBLOCK, signo, NULL);
}

/* Returns whether the kernel has the agent's handler for a signal. */
static bool has_front(int signo)
{
	struct sigaction act;

	return is_agents(signo) ||
	       (signals_were_left(signo) && may_wrap(signo) &&
		!next_signal.sigaction(signo, NULL, &act) && act.sa_sigaction == agent_handler);
}

static int with_restart(int flags, bool restart)
{
	return restart ? flags | SA_RESTART : flags & ~SA_RESTART;
}

/* Does for the program what siginterrupt() does. The agent's handler stays one with SA_RESTART. */
static void note_interrupt(int signo, bool interrupt)
{
	const uint64_t one = (uint64_t)1 << (signo - 1);

	if (interrupt)
		atomic_fetch_or(&interrupting, one);
	else
		atomic_fetch_and(&interrupting, ~one);
	atomic_fetch_or(&untold, one);
	if (signo == agent.signo)
		believed_action.sa_flags = with_restart(believed_action.sa_flags, !interrupt);
	else
		actions[signo].flags = with_restart(actions[signo].flags, !interrupt);
}

static int set_interrupt(int signo, int interrupt)
{
	int ret;

	if (has_front(signo)) {
		note_interrupt(signo, interrupt);
		return 0;
	}
	ret = NEXT(siginterrupt, "siginterrupt")(signo, interrupt);
	if (!ret)
		atomic_fetch_and(&untold, ~((uint64_t)1 << (signo - 1)));
	if (!ret && signo != agent.signo && may_wrap(signo))
		adopt(signo);
	return ret;
}

HOOK_API int siginterrupt(int signo, int interrupt)
{
	return set_interrupt(signo, interrupt);
}

/*
 * Returns the @i-th signal to try, or 0 if there are no more. SIGRTMAX - 2 and those below come
 * first, as valgrind and some runtimes take the last ones.
 */
static int candidate(int i)
{
	int first = SIGRTMAX - 2, most = first - SIGRTMIN;

	return i < most ? first - i : i < most + 2 ? first + 1 + (i - most) : 0;
}

static bool (*is_usable)(int signo);

/*
 * Takes another signal for the agent: one that nobody handles and that was not left before. Returns
 * 0 or -EBUSY.
 */
static int take_another(void)
{
	const struct sigaction action = front();
	struct sigaction old;
	int signo;

	for (int i = 0; (signo = candidate(i)); i++) {
		if (was_left(signo) || next_signal.sigaction(signo, NULL, &old) ||
		    old.sa_handler != SIG_DFL || !is_usable(signo))
			continue;
		if (next_signal.sigaction(signo, &action, NULL))
			continue;
		agent.signo = signo;
		return 0;
	}
	return -EBUSY;
}

int signals_take_own(void (*handler)(int, siginfo_t *, void *), bool (*usable)(int signo))
{
	agent_handler = handler;
	is_usable = usable;
	return take_another();
}

/* Sets the program's action for a signal that was the agent's. Called with the lock. */
static void give_action(int signo, const struct sigaction *act)
{
	struct sigaction was;

	if (is_handler(act))
		set_handler(signo, act, &was);
	else
		keep_in_front(signo, act);
}

/* The actions of the program's handlers, as the program set them. Used with the lock. */
static struct sigaction views[NR_SIGNALS];

/*
 * Reads the actions of the program's handlers into views[], because their masks depend on the
 * agent's signal. Called with the lock. Returns the set of signals that were read.
 */
static ksigset view_handlers(void)
{
	ksigset found = 0;

	for (int signo = 1; signo < NR_SIGNALS; signo++) {
		if (!atomic_load_explicit(&actions[signo].handler, memory_order_relaxed) ||
		    next_signal.sigaction(signo, NULL, &views[signo]) || !is_enter(&views[signo]))
			continue;
		translate(&views[signo], &actions[signo]);
		found |= (ksigset)1 << (signo - 1);
	}
	return found;
}

/*
 * Makes @signo the program's, after agent.signo has become another one. @handled is the set from
 * view_handlers(). Called with the lock.
 */
static void leave(int signo, ksigset handled)
{
	struct sigaction act = believed_action, was;

	atomic_fetch_or(&left, (uint64_t)1 << (signo - 1));
	believed_action = (struct sigaction){ .sa_handler = SIG_DFL };
	agent.shared = false;
	give_action(signo, &act);
	for (int i = 1; i < NR_SIGNALS; i++)
		if (handled >> (i - 1) & 1)
			set_handler(i, &views[i], &was);
}

bool signals_leave(void)
{
	ksigset mask = lock(), handled;
	int signo = agent.signo;
	bool ok = agent_signo() != signo;

	if (!ok) {
		handled = view_handlers();
		ok = !take_another();
		if (ok)
			leave(signo, handled);
	}
	unlock(mask);
	return ok;
}

/* Adjusts the kernel's action for all signals that are or were the agent's. Called with the lock. */
static void adjust_all(void)
{
	for (int signo = 1; signo < NR_SIGNALS; signo++)
		if (signo == agent.signo || was_left(signo))
			adjust(signo);
}

static bool ignores_any(void)
{
	for (int signo = 1; signo < NR_SIGNALS; signo++)
		if (is_ignored(signo))
			return true;
	return false;
}

/*
 * Does the same in a child of vfork(), whose actions are its own while its memory, and so the count, is its
 * parent's.
 */
static void adjust_vfork_child(bool on)
{
	const struct sigaction ours = front(), ignore = { .sa_handler = SIG_IGN };

	for (int signo = 1; signo < NR_SIGNALS; signo++)
		if (is_ignored(signo))
			exchange_action(signo, on ? &ours : &ignore, on ? &ignore : &ours);
}

/*
 * Several threads may execute programs at once, and each of these is to get what the program ignores: so the
 * last one of them ends it.
 */
void signals_hand_on(bool on)
{
	ksigset mask;

	if (!is_agents_process()) {
		adjust_vfork_child(on);
		return;
	}
	if (!on && !local.hand_on_depth)
		return;
	local.hand_on_depth += on ? 1 : -1;
	atomic_fetch_add(&handing_on, on ? 1 : -1);
	if (likely(!kept_ignored && !(on && ignores_any())))
		return;
	mask = lock();
	adjust_all();
	unlock(mask);
}

/* Other threads of the parent may just be executing programs. */
void signals_fork_child(void)
{
	ksigset mask;

	atomic_store(&actions_lock, 0);
	atomic_store(&handing_on, 0);
	local.hand_on_depth = 0;
	mask = lock();
	kept_ignored |= (ksigset)1 << (agent.signo - 1);
	adjust_all();
	unlock(mask);
}

bool signals_allow_default(int signo)
{
	const struct sigaction none = { .sa_handler = SIG_DFL };

	if (atomic_load(&actions[signo].handler) != (void *)SIG_DFL)
		return false;
	next_signal.sigaction(signo, &none, NULL);
	return true;
}

void signals_chain(int signo, siginfo_t *si, void *context)
{
	struct sigaction action = believed_action;

	if (!is_handler(&action))
		return;
	if (action.sa_flags & SA_SIGINFO)
		action.sa_sigaction(signo, si, context);
	else
		action.sa_handler(signo);
}

/* Behind a filter of system calls the set must be readable. */
bool take_set(const sigset_t *set, sigset_t *copy)
{
	memset(copy, 0, sizeof(*copy));
	if (!on_stack(set, sizeof(ksigset)) && !in_sandbox())
		return peek(copy, set, sizeof(ksigset));
	memcpy(copy, set, sizeof(ksigset));
	return true;
}

const sigset_t *without_own(const sigset_t *set, sigset_t *copy)
{
	if (!agent.on || !set || !take_set(set, copy))
		return set;
	move_follow();
	move_if_named(copy);
	sigdelset(copy, agent_signo());
	return copy;
}

/*
 * Returns whether the caller is in this object. The capture library in this object blocks all
 * signals for a moment, and that must not be changed: only the program's calls are.
 */
static bool called_by_agent(const void *caller)
{
	return caller >= (const void *)__ehdr_start && caller < (const void *)etext;
}

typedef int (*mask_call)(int, const sigset_t *, sigset_t *);

/* Makes the program's change of its mask; the change of the agent's signal is only remembered. */
static int change_mask(mask_call call, int how, const sigset_t *set, sigset_t *old)
{
	bool member, was;
	sigset_t copy;
	int ret;

	held_mend();
	held_look();
	if (set && !take_set(set, &copy))
		return call(how, set, old);
	move_follow();
	if (set && how != SIG_UNBLOCK)
		move_if_named(&copy);
	was = local.blocked;
	member = set && sigismember(&copy, agent_signo());
	if (set && how != SIG_UNBLOCK && is_held())
		sigaddset(&copy, agent_signo());
	else if (set && (how != SIG_UNBLOCK || is_held()))
		sigdelset(&copy, agent_signo());
	ret = call(how, set ? &copy : NULL, old);
	if (ret)
		return ret;
	/*
	 * Corrects the bit of the agent's signal: the signal may be blocked for a call that waits,
	 * and a thread that is cancelled in that call does not unblock it.
	 */
	if (old && was)
		sigaddset(old, agent_signo());
	else if (old)
		sigdelset(old, agent_signo());
	if (set && (how == SIG_SETMASK || member)) {
		local.blocked = member && how != SIG_UNBLOCK;
		local.masking.context = NULL;
	}
	return ret;
}

/* Blocks or unblocks a signal as the program's call of sigprocmask() does. */
static int change_one(int how, int signo, sigset_t *old)
{
	mask_call call = NEXT(sigprocmask, "sigprocmask");
	sigset_t set;

	sigemptyset(&set);
	if (sigaddset(&set, signo))
		return -1;
	return agent.on ? change_mask(call, how, &set, old) : call(how, &set, old);
}

HOOK_API int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	mask_call call = NEXT(sigprocmask, "sigprocmask");

	if (!agent.on || called_by_agent(__builtin_return_address(0)))
		return call(how, set, old);
	return change_mask(call, how, set, old);
}

HOOK_API int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	mask_call call = NEXT(pthread_sigmask, "pthread_sigmask");

	if (!agent.on || called_by_agent(__builtin_return_address(0)))
		return call(how, set, old);
	return change_mask(call, how, set, old);
}

HOOK_API int signalfd(int fd, const sigset_t *set, int flags)
{
	sigset_t copy;

	return NEXT(signalfd, "signalfd")(fd, without_own(set, &copy), flags);
}
