// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * children.c - CPU time that no agent samples.
 *
 * A process still runs when its agent has left it: the C library ends, and the kernel releases its
 * memory. When the parent waits for the child, it learns the CPU time of the child including that
 * part. So hooks of the calls that wait for a child report that time to the recorder. It is also
 * all that is known of children that no agent can enter; their names come from the calls that
 * execute them.
 */
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "../common/peek.h"
#include "agent.h"

static struct {
	pid_t (*wait)(int *);
	pid_t (*waitpid)(pid_t, int *, int);
	pid_t (*wait3)(int *, int, struct rusage *);
	pid_t (*wait4)(pid_t, int *, int, struct rusage *);
	int (*waitid)(idtype_t, id_t, siginfo_t *, int);
} next_wait;

#define RESOLVE(name) (*(void **)&next_wait.name = next_symbol(#name))

void children_resolve(void)
{
	RESOLVE(wait);
	RESOLVE(waitpid);
	RESOLVE(wait3);
	RESOLVE(wait4);
	RESOLVE(waitid);
}

#define NEXT(name) (next_wait.name ? next_wait.name : (children_resolve(), next_wait.name))

static uint64_t cpu_of(const struct rusage *usage)
{
	return ((uint64_t)usage->ru_utime.tv_sec + (uint64_t)usage->ru_stime.tv_sec) * 1000000000 +
	       ((uint64_t)usage->ru_utime.tv_usec + (uint64_t)usage->ru_stime.tv_usec) * 1000;
}

static uint64_t cpu_of_children(void)
{
	struct rusage usage = { 0 };

	sys2(SYS_getrusage, RUSAGE_CHILDREN, &usage);
	return cpu_of(&usage);
}

static void put(struct agent_thread *t, const void *record, uint32_t size)
{
	ksigset old = block_signals();
	void *to = ring_reserve(t, size);

	if (to) {
		memcpy(to, record, size);
		ring_commit(t, size);
	}
	restore_signals(old);
}

void children_end(struct agent_thread *t)
{
	struct rec_end end = {
		.record = { .size = sizeof(end), .type = REC_END },
		.time = now(CLOCK_MONOTONIC),
		.self = now(CLOCK_PROCESS_CPUTIME_ID),
		.children = cpu_of_children(),
	};

	if (agent.wall || atomic_load(&agent.header->stop))
		return;
	take_name(t);
	put(t, &end, sizeof(end));
}

void children_exec(int pid, bool spawned, const char *path)
{
	char name[REC_PATH] = "";

	if (agent.wall || atomic_load(&agent.header->stop))
		return;
	if (peek_text(name, path, sizeof(name) - 1) < 0)
		name[0] = '\0';
	for (int i = 0; i < REC_EXECS; i++) {
		struct rec_exec *e = &agent.header->execs[i];
		uint32_t free = REC_EXEC_FREE;

		if (!atomic_compare_exchange_strong(&e->state, &free, REC_EXEC_TAKEN))
			continue;
		e->pid = pid;
		e->instance = agent.instance;
		e->cpu = spawned ? 0 : now(CLOCK_PROCESS_CPUTIME_ID);
		memcpy(e->path, name, sizeof(name));
		atomic_store_explicit(&e->state, REC_EXEC_READY, memory_order_release);
		return;
	}
}

/* Returns this thread, or NULL if the children of its process are not to be reported. */
static struct agent_thread *waiter(void)
{
	if (!agent.on || in_sandbox() || agent.wall || agent.pid != (int)sys0(SYS_getpid) ||
	    atomic_load(&agent.header->stop))
		return NULL;
	return agent_self();
}

static void tell(struct agent_thread *t, pid_t pid, uint64_t cpu)
{
	struct rec_reaped reaped = {
		.record = { .size = sizeof(reaped), .type = REC_REAPED },
		.pid = pid,
		.cpu = cpu,
	};

	put(t, &reaped, sizeof(reaped));
}

static inline __attribute__((always_inline)) pid_t
wait_and_tell(struct agent_thread *t, pid_t pid, int *status, int options, struct rusage *usage)
{
	struct rusage own;
	int seen;

	usage = usage ? usage : &own;
	status = status ? status : &seen;
	pid = NEXT(wait4)(pid, status, options, usage);
	if (pid > 0 && (WIFEXITED(*status) || WIFSIGNALED(*status)))
		tell(t, pid, cpu_of(usage));
	return pid;
}

HOOK_API pid_t wait(int *status)
{
	struct agent_thread *t = waiter();

	return t ? wait_and_tell(t, -1, status, 0, NULL) : NEXT(wait)(status);
}

HOOK_API pid_t waitpid(pid_t pid, int *status, int options)
{
	struct agent_thread *t = waiter();

	return t ? wait_and_tell(t, pid, status, options, NULL) :
		   NEXT(waitpid)(pid, status, options);
}

HOOK_API pid_t wait3(int *status, int options, struct rusage *usage)
{
	struct agent_thread *t = waiter();

	return t ? wait_and_tell(t, -1, status, options, usage) :
		   NEXT(wait3)(status, options, usage);
}

HOOK_API pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
	struct agent_thread *t = waiter();

	return t ? wait_and_tell(t, pid, status, options, usage) :
		   NEXT(wait4)(pid, status, options, usage);
}

/* waitid() reports no times, so the growth of the sum for all children is used. */
HOOK_API int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	struct agent_thread *t = info && !(options & WNOWAIT) ? waiter() : NULL;
	uint64_t before = t ? cpu_of_children() : 0;
	int ret = NEXT(waitid)(type, id, info, options);

	if (t && !ret && info->si_pid > 0 &&
	    (info->si_code == CLD_EXITED || info->si_code == CLD_KILLED ||
	     info->si_code == CLD_DUMPED))
		tell(t, info->si_pid, cpu_of_children() - before);
	return ret;
}
