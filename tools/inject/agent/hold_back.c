// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hold_back.c - holds back the agent's signal on stacks that have no room for it, and in threads that
 * would not survive it.
 *
 * The kernel puts the frame of a signal onto the stack without checking that there is room, and the
 * agent's handler needs more on top. A stack that the program made small, for a purpose of its own,
 * may have too little:
 *
 * - In a handler of the program on an alternate stack. The agent's signal is in the mask of all
 *   handlers that may run on one, and enter() (signals.c) unblocks it where there is plenty of
 *   room. Otherwise the signal comes when the handler returns, before the interrupted code makes a
 *   step. The agent recognizes it by that, and charges the time to such a handler.
 *
 * - In a thread whose alternate stack is so small that the agent's handler itself has no room
 *   there. The signal is blocked until the program sets another alternate stack, or none.
 *
 * - In a thread on a small stack that the program provides. Other threads get more stack than they
 *   ask for (common/room.h).
 *
 * - In a thread that handles its system calls itself (PR_SET_SYSCALL_USER_DISPATCH): while a byte of
 *   the program says so, a call from outside of one range of code is SIGSYS. Those of the agent's
 *   handler would be, and that which leaves it, and the program's handler would not know them.
 *
 * - In a thread whose stack is in pieces, as code has it that is built with -fsplit-stack, and that
 *   has no alternate stack. A piece may end 3584 bytes below the stack pointer. libgcc blocks all
 *   signals before it adds a piece, and the hook of that call finds out (held_look()).
 *
 * longjmp() may leave a handler without restoring the mask. So the next hook that finds the thread
 * on another stack unblocks the signal (held_mend()).
 *
 * A program that is executed gets the mask of the thread that executes it, and is not to have a signal
 * blocked for the sake of a stack that is not its own. So the signal is admitted for the time of such a
 * call, in which nothing sends it (hand_on_signals() in main.c). A handler may leave system() by siglongjmp(): then
 * the next hook ends that (mend_handed_on()). Behind a filter of system calls this
 * goes on if the filter permits all of it. Otherwise a thread that installs one is not sampled from then on if the
 * signal is held back there. Two kinds of program still get it blocked then: those that are executed in a handler on
 * a small alternate stack, or on any if the mask may not be changed, and by threads that held it back when another
 * one gave all a filter.
 */
#include <sys/auxv.h>
#include <ucontext.h>

#include "../common/peek.h"
#include "../common/room.h"
#include "agent.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif
#define USUAL_FRAME 4096 /* where the kernel does not report the size */

#if defined(__x86_64__)
#define ARCH_GET_XCOMP_PERM 0x1022
#define TILE_DATA 18
#define TILE_BYTES 8192

/*
 * Returns whether this process may not use the state of tiles (AMX), which is most of the largest
 * frame.
 */
static bool has_no_tiles(void)
{
	uint64_t permitted = 0;

	return !sys2(SYS_arch_prctl, ARCH_GET_XCOMP_PERM, &permitted) &&
	       !(permitted >> TILE_DATA & 1);
}
#else
#define TILE_BYTES 0

static bool has_no_tiles(void)
{
	return false;
}
#endif

size_t held_frame(void)
{
	size_t most = getauxval(AT_MINSIGSTKSZ);

	if (!most)
		return USUAL_FRAME;
	return most > TILE_BYTES + 2048 && has_no_tiles() ? most - TILE_BYTES : most;
}

void held_mend(void)
{
	if (unlikely(local.hand_on_depth))
		mend_handed_on();
	if (!local.held.hi || is_held())
		return;
	local.held.hi = local.held.lo = 0;
	if (may_mask())
		change_agent_signal(SIG_UNBLOCK);
}

/* Returns whether the thread must not get the agent's signal while it has that alternate stack. */
static bool is_cramped(const stack_t *stack)
{
	if (local.dispatches)
		return true;
	return stack->ss_flags & SS_DISABLE ? local.stack_is_small :
					      stack->ss_size < agent.frame + SAMPLE_NEED;
}

/*
 * The thread's event sends a signal for each period. These would pile up while they are blocked,
 * until the kernel sends SIGIO instead. So the event ends; of the timer at most one is pending.
 */
static void be_cramped(bool cramped)
{
	struct agent_thread *t = agent_self();
	bool was = local.cramped;

	if (t && cramped != was)
		t->tried = cramped;
	/* The signal is blocked first: its handler may open another event while one is closed. */
	if (cramped && !was) {
		change_agent_signal(SIG_BLOCK);
		if (t)
			event_close(t);
	}
	local.cramped = cramped;
	if (!was || cramped)
		return;
	local.was_cramped = true;
	if (!local.waits_in)
		admit_agent_signal();
}

/*
 * Where the thread's piece of the stack ends; 0 if its stack is in one piece. glibc keeps this word
 * of each thread for code that is built with -fsplit-stack.
 */
#if defined(__x86_64__)
static uintptr_t end_of_piece(void)
{
	uintptr_t end;

	__asm__("movq %%fs:0x70, %0" : "=r"(end));
	return end;
}
#else
static uintptr_t end_of_piece(void)
{
	return 0;
}
#endif

static bool has_glibc;

void held_look(void)
{
	stack_t stack;

	if (local.stack_is_small || !has_glibc || !end_of_piece() || in_sandbox() ||
	    agent.pid != (int)sys0(SYS_getpid) || sys2(SYS_sigaltstack, NULL, &stack))
		return;
	local.stack_is_small = true;
	if (is_cramped(&stack))
		be_cramped(true);
}

bool sandbox_dispatches(void)
{
	bool was = local.dispatches;

	if (was || !agent.on || in_sandbox() || agent.pid != (int)sys0(SYS_getpid))
		return was;
	local.dispatches = true;
	be_cramped(true);
	return false;
}

void sandbox_dispatch_ended(void)
{
	stack_t stack;

	if (!local.dispatches || in_sandbox() || agent.pid != (int)sys0(SYS_getpid))
		return;
	local.dispatches = false;
	if (!sys2(SYS_sigaltstack, NULL, &stack))
		be_cramped(is_cramped(&stack));
}

void held_stop(struct agent_thread *t)
{
	bool others;

	event_close(t);
	agent_pause(t);
	move_drain(agent_signo(), NULL, &others);
}

/*
 * Ends the thread's event, so that from now on each tick signals. The kernel drops the signals of a timer in a
 * program that is executed, but not those of an event.
 */
static void leave_it_to_ticks(struct agent_thread *t)
{
	ksigset old = block_signals();

	held_stop(t);
	agent_go_on(t);
	restore_signals(old);
}

void held_before_filter(void)
{
	struct agent_thread *t = agent_self();
	bool others;

	if (t && t->armed && t->event)
		leave_it_to_ticks(t);
	if (!local.cramped)
		return;
	if (t) {
		agent_disarm(t);
		/* The recorder does not ask this thread for anything, either. */
		t->slot->signo = 0;
	}
	move_drain(agent_signo(), NULL, &others);
	local.cramped = false;
	if (!local.blocked)
		change_agent_signal(SIG_UNBLOCK);
}

void held_fork_child(void)
{
	stack_t stack;

	if (!local.dispatches)
		return;
	local.dispatches = false;
	local.cramped = !sys2(SYS_sigaltstack, NULL, &stack) && is_cramped(&stack);
}

static int (*next_sigaltstack)(const stack_t *, stack_t *);

void held_resolve(void)
{
	*(void **)&next_sigaltstack = next_symbol("sigaltstack");
	has_glibc = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
}

/*
 * A hook that watches for small alternate stacks. The child of a vfork() has no timer, so nothing
 * is to be done there.
 */
HOOK_API int sigaltstack(const stack_t *new, stack_t *old)
{
	stack_t copy;
	bool was;
	int ret;

	if (!next_sigaltstack)
		held_resolve();
	if (!agent.on || in_sandbox() || !new || !peek(&copy, new, sizeof(copy)) ||
	    agent.pid != (int)sys0(SYS_getpid))
		return next_sigaltstack(new, old);
	held_mend();
	was = local.cramped;
	/*
	 * The signal is blocked before the thread has a small stack, and unblocked after it no
	 * longer has it.
	 */
	if (is_cramped(&copy))
		be_cramped(true);
	ret = next_sigaltstack(new, old);
	if (ret) {
		be_cramped(was);
		return ret;
	}
	local.held.hi = local.held.lo = 0;
	be_cramped(is_cramped(&copy));
	return 0;
}
