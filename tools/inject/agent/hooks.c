// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hooks.c - hooks of library calls that the agent must see:
 *
 * - pthread_create(), thrd_create(), _Fork(): there are threads and processes to follow.
 * - dlopen(), dlclose(), _exit(): code is loaded, or goes away.
 *
 * A hook may be called before the agent's constructor has run.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "../common/limits.h"
#include "../common/room.h"
#include "agent.h"
#include "shstk.h"

struct next next;
_Atomic bool early_threads;

void *next_symbol(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

#define RESOLVE(member, name) (*(void **)&next.member = next_symbol(name))

void hooks_resolve(void)
{
	RESOLVE(pthread_create, "pthread_create");
	RESOLVE(thrd_create, "thrd_create");
	RESOLVE(fork_raw, "_Fork");
	RESOLVE(exit_raw, "_exit");
	RESOLVE(dlopen, "dlopen");
	RESOLVE(dlmopen, "dlmopen");
	RESOLVE(dlclose, "dlclose");
}

#define NEXT(member) (next.member ? next.member : (hooks_resolve(), next.member))

static void begin_thread(struct agent_thread *t)
{
	local.stack_end = (uintptr_t)__builtin_frame_address(0);
	local.blocked = t->blocked;
	local.cramped = local.stack_is_small = t->cramped;
	local.signo = t->signo;
	shstk_thread_init();
	agent_begin(t);
}

/*
 * Starts a thread of pthread_create(). It calls the start routine by a tail call, so that stacks of
 * the program's threads look as they do without the agent.
 */
static void *start_thread(void *arg)
{
	struct agent_thread *t = arg;
	void *(*fn)(void *) = t->fn;
	void *fn_arg = t->arg;

	begin_thread(t);
	return fn(fn_arg);
}

static bool may_act(void)
{
	/* A child of vfork() shares this memory but has another process ID. */
	return agent.on && !in_sandbox() && agent.pid == (int)sys0(SYS_getpid);
}

/*
 * Takes a slot for a thread that is about to be created. Returns NULL if the thread is not sampled.
 */
static struct agent_thread *new_thread(void)
{
	struct agent_thread *t;

	if (!agent.on) {
		atomic_store(&early_threads, true);
		return NULL;
	}
	if (in_sandbox()) {
		atomic_fetch_add(&agent.header->sandboxed, 1);
		return NULL;
	}
	/*
	 * This prepares what captures need in the calling thread. For the first thread of a process
	 * that otherwise happens when it is sampled, if ever; by then another thread may have
	 * forbidden system calls.
	 */
	shstk_thread_init();
	t = agent_take(0, true);
	if (t) {
		t->blocked = local.blocked;
		t->signo = agent_signo();
	}
	return t;
}

HOOK_API int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			    void *arg)
{
	struct agent_thread *t = new_thread();
	struct room room;
	int ret;

	if (!t)
		return NEXT(pthread_create)(thread, attr, fn, arg);
	room_begin(&room, attr, agent.frame + SCAN_NEED + HOOK_NEED);
	t->fn = fn;
	t->arg = arg;
	t->cramped = room.small && room.attr == attr;
	ret = NEXT(pthread_create)(thread, room.attr, start_thread, t);
	/* There may be no memory for a larger stack than the program asked for. */
	if (ret == EAGAIN && room.attr != attr) {
		t->cramped = room.small;
		ret = NEXT(pthread_create)(thread, attr, start_thread, t);
	}
	room_end(&room);
	if (ret)
		agent_drop(t);
	return ret;
}

static int start_thrd(void *arg)
{
	struct agent_thread *t = arg;
	thrd_start_t fn = (thrd_start_t)(void *)t->fn;
	void *fn_arg = t->arg;

	begin_thread(t);
	return fn(fn_arg);
}

HOOK_API int thrd_create(thrd_t *thread, thrd_start_t fn, void *arg)
{
	struct agent_thread *t = new_thread();
	int ret;

	if (!t)
		return NEXT(thrd_create)(thread, fn, arg);
	t->fn = (void *(*)(void *))(void *)fn;
	t->arg = arg;
	ret = NEXT(thrd_create)(thread, start_thrd, t);
	if (ret != thrd_success)
		agent_drop(t);
	return ret;
}

/*
 * A hook is needed because _Fork(), unlike fork(), does not call the handlers of pthread_atfork().
 */
HOOK_API pid_t _Fork(void)
{
	pid_t pid = NEXT(fork_raw) ? next.fork_raw() : fork();

	if (!pid && agent.on && !in_sandbox() && agent.pid != (int)sys0(SYS_getpid))
		agent_fork_child();
	return pid;
}

HOOK_API void _exit(int status)
{
	if (may_act())
		agent_leave();
	local.child_filtered = false;
	NEXT(exit_raw)(status);
	__builtin_unreachable();
}

HOOK_API void _Exit(int status)
{
	_exit(status);
}

/*
 * The loader looks at the return address to find the library that calls, and uses that library's
 * search path. These two hooks end in tail calls, so that the loader sees the true caller. So they
 * can only note that something is about to be loaded.
 */
HOOK_API void *dlopen(const char *file, int mode)
{
	atomic_fetch_add(&agent.opens, 1);
	return NEXT(dlopen)(file, mode);
}

HOOK_API void *dlmopen(Lmid_t namespace, const char *file, int mode)
{
	atomic_fetch_add(&agent.opens, 1);
	return NEXT(dlmopen)(namespace, file, mode);
}

HOOK_API int dlclose(void *handle)
{
	int ret;

	if (agent.on && !in_sandbox())
		maps_send_if_changed();
	ret = NEXT(dlclose)(handle);
	if (agent.on && !in_sandbox()) {
		/* Something else may be mapped at the same addresses later. */
		maps_send_if_changed();
		shstk_modules_changed();
	}
	return ret;
}

/*
 * Releases addresses that the agent has reserved: the program has a new limit of its address space.
 */
void limits_changed(pid_t pid)
{
	if ((!pid || pid == agent.pid) && may_act())
		agent_obey_limit();
}

void limits_before_lock(void)
{
	if (may_act())
		agent_before_lock();
}
