// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sandbox.c - programs that give up system calls.
 *
 * A seccomp filter may end the process for a call that its author did not
 * think of. Before it installs one, a program without privileges has to call
 * prctl(PR_SET_NO_NEW_PRIVS); libseccomp always does. From then on, or from the
 * filter on, the agent makes no system call of its own: timers that exist go on,
 * the handler needs none, and new threads and processes are counted but not sampled.
 * What is executed in the sandbox is followed only if there is no filter (common/join.h).
 *
 * The capture library opens each module's file when it meets it first. That
 * is done here for all files that are mapped, while it is still allowed.
 */
#include <string.h>

#include "../common/env.h"
#include "../common/join.h"
#include "../common/sandbox.h"
#include "agent.h"
#include "seal.h"
#include "shstk.h"

#define MOST_WAIT 10000000000 /* ns */
#define OWN_FRAMES 8 /* with more of this object than the loader's among them */

static void meet_file(void *arg, const char *line, size_t n)
{
	(void)arg;
	if (memchr(line, '/', n) || memmem(line, n, "[vdso]", 6))
		shstk_meet(parse_digits(line, 16));
}

/*
 * Other threads may be in the agent's handler, and about to make a call there. A filter may be
 * for all threads. None is there for long, unless it is stopped. A child that the agent does not
 * follow has no other threads.
 */
static void wait_for_handlers(void)
{
	uint64_t begin = now(CLOCK_MONOTONIC);

	if (agent.pid != (int)sys0(SYS_getpid))
		return;
	atomic_thread_fence(memory_order_seq_cst);
	while (atomic_load(&agent.handlers) && now(CLOCK_MONOTONIC) - begin < MOST_WAIT)
		sys0(SYS_sched_yield);
}

static void prepare(void)
{
	struct thread *t = agent_self();
	uint64_t pcs[OWN_FRAMES];

	if (t)
		maps_send_if_changed();
	maps_each(meet_file, NULL);
	/* This object itself, by return addresses: its hooks are in stacks. */
	shstk_capture(pcs, OWN_FRAMES, NULL, NULL);
	if (!agent.sandboxed)
		env_expect_filters(seccomp_filters());
	agent.sandboxed = true;
	wait_for_handlers();
}

/*
 * A child of vfork() has this memory too, and its parent's rights stay: only it itself is in the
 * sandbox. What fork() or clone() made without the agent has none of the threads.
 */
static bool is_vfork_child(void)
{
	return agent.on && !in_sandbox() && agent.pid != (int)sys0(SYS_getpid) && agent_self();
}

/* Nor is it asked once it is permitted again: that is so for one thread. */
void sandbox_without_tsc(void)
{
	agent.tsc_faults = true;
}

/* Twice: much may be loaded before there is a filter. Behind one nothing may be asked for. */
void sandbox_begins(bool filter)
{
	if (own.child_filtered)
		return;
	if (is_vfork_child()) {
		own.child_filtered = filter;
		return;
	}
	if (agent.on && !agent.filtered)
		prepare();
	if (filter && agent.on)
		shstk_seal();
	agent.filtered |= filter;
}
