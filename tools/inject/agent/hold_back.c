// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hold_back.c - holds back the agent's signal on stacks that have no room for it.
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
 * - In a thread whose stack is in pieces, as code has it that is built with -fsplit-stack, and that
 *   has no alternate stack. A piece may end 3584 bytes below the stack pointer. libgcc blocks all
 *   signals before it adds a piece, and the hook of that call finds out (held_look()).
 *
 * longjmp() may leave a handler without restoring the mask. So the next hook that finds the thread
 * on another stack unblocks the signal (held_mend()).
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
	if (!local.held.hi || is_held())
		return;
	local.held.hi = local.held.lo = 0;
	if (!in_sandbox())
		change_agent_signal(SIG_UNBLOCK);
}

/* Returns whether the thread has no room for the agent's signal with that alternate stack. */
static bool is_cramped(const stack_t *stack)
{
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
	bool was = local.cramped;
	stack_t copy;
	int ret;

	if (!next_sigaltstack)
		held_resolve();
	if (!agent.on || in_sandbox() || !new || !peek(&copy, new, sizeof(copy)) ||
	    agent.pid != (int)sys0(SYS_getpid))
		return next_sigaltstack(new, old);
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
