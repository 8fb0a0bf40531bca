// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * in_sandbox.c - programs that give up system calls.
 *
 * A seccomp filter may end the process for a call that its author did not think of. Before a
 * program without privileges installs a filter, it has to call prctl(PR_SET_NO_NEW_PRIVS);
 * libseccomp always does. From that call on, or from the filter on, the agent makes no system call
 * of its own: timers that exist go on, the handler needs no system call, and new threads and
 * processes are counted but not sampled. Programs that are executed in the sandbox are followed
 * only if there is no filter (common/join.h). What a filter permits is seen in the filter itself (filter.c): where
 * masks may be changed, and what is done for programs that are executed, that goes on.
 *
 * The capture library opens the file of each module when it first finds that module. Here it opens
 * the files of all modules that are mapped, while that is still allowed.
 */
#include <string.h>

#include "../common/env.h"
#include "../common/join.h"
#include "../common/peek.h"
#include "../common/sandbox_hook.h"
#include "agent.h"
#include "filter.h"
#include "seal.h"
#include "shstk.h"

#define MOST_WAIT 10000000000 /* ns */
#define OWN_FRAMES 8 /* more frames of this object than of the loader are among them */

static void meet_file(void *arg, const char *line, size_t n)
{
	(void)arg;
	if (memchr(line, '/', n) || memmem(line, n, "[vdso]", 6))
		shstk_meet(parse_digits(line, 16));
}

/*
 * Waits until no other thread is in the agent's handler and about to make a system call there,
 * because a filter may be for all threads. No thread is there for long, unless it is stopped. A
 * child that the agent does not follow has no other threads.
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
	struct agent_thread *t = agent_self();
	uint64_t pcs[OWN_FRAMES];

	if (t)
		maps_send_if_changed();
	maps_each(meet_file, NULL);
	/* The stack has return addresses in this object, as its hooks are in stacks. */
	shstk_capture(pcs, OWN_FRAMES, NULL, NULL);
	if (!agent.sandboxed)
		env_expect_filters(seccomp_filters());
	agent.sandboxed = true;
	wait_for_handlers();
}

/*
 * Returns whether this is a child of vfork(). Such a child shares this memory, and its parent keeps
 * its rights: only the child is in the sandbox. A child that fork() or clone() made without the
 * agent has none of the threads.
 */
static bool is_vfork_child(void)
{
	return agent.on && !in_sandbox() && agent.pid != (int)sys0(SYS_getpid) && agent_self();
}

/*
 * Notes that the time stamp counter may not be read. That stays so even if the program permits it
 * again, as it does so for one thread only.
 */
void sandbox_without_tsc(void)
{
	agent.tsc_faults = true;
}

static const uint32_t calls_to_mask[] = { SYS_rt_sigprocmask };
static const uint32_t calls_to_hand_on[] = {
	SYS_rt_sigaction,
	SYS_rt_sigtimedwait,
	SYS_rt_sigqueueinfo,
	SYS_rt_tgsigqueueinfo,
	SYS_kill,
	SYS_timer_settime,
	SYS_clock_gettime,
	SYS_getpid,
	SYS_gettid,
	SYS_sched_yield,
	SYS_munmap,
	SYS_rt_sigprocmask,
	SYS_process_vm_readv,
};

static bool permits(const struct sock_fprog *f, const uint32_t *calls, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!filter_permits(f->filter, f->len, calls[i]))
			return false;
	return true;
}

#define PERMITS(f, calls) permits(f, calls, sizeof(calls) / sizeof(calls[0]))

#define PIECE 64 /* instructions that are tested at a time */

/* Copies @n bytes of the program's, at most a page. Behind another filter it makes calls to change a mask only. */
static bool copy_piece(void *to, const void *from, size_t n)
{
	uintptr_t at = (uintptr_t)from;

	if (!agent.filtered)
		return peek(to, from, n);
	if (at + n < at || !can_peek(at) || !can_peek(at + n - 1))
		return false;
	memcpy(to, from, n);
	return true;
}

/* Reads where the filter is. Returns false if it cannot be read. */
static bool find_filter(const void *program, struct sock_fprog *f)
{
	struct sock_filter piece[PIECE];

	if (!copy_piece(f, program, sizeof(*f)))
		return false;
	for (size_t i = 0; i < f->len; i += PIECE)
		if (!copy_piece(piece, &f->filter[i],
				(f->len - i < PIECE ? f->len - i : PIECE) * sizeof(*piece)))
			return false;
	return true;
}

/* Notes what a filter that is about to be installed permits. */
static void judge(const void *program)
{
	struct sock_fprog f;

	if (!agent.filtered)
		agent.permits_mask = agent.permits_hand_on = true;
	/* Without the first one there is not the second one, nor may anything be asked for. */
	agent.permits_mask = agent.permits_mask && program && find_filter(program, &f) &&
			     PERMITS(&f, calls_to_mask);
	agent.permits_hand_on = agent.permits_hand_on && agent.permits_mask &&
				PERMITS(&f, calls_to_hand_on);
}

/*
 * Prepares for a sandbox. This runs at each such call until there is a @filter, as more may be
 * loaded between two calls. Behind a filter nothing can be asked for.
 */
void sandbox_begins(bool filter, const void *program)
{
	if (local.child_filtered)
		return;
	if (is_vfork_child()) {
		local.child_filtered = filter;
		return;
	}
	if (agent.on && !agent.filtered) {
		prepare();
		if (filter)
			held_before_filter();
	}
	if (filter && agent.on) {
		shstk_seal();
		judge(program);
	}
	agent.filtered |= filter;
}
