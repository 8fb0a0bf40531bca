// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hooks.c - library calls that pass by the agent on their way to libc.
 *
 * - pthread_create(), thrd_create(), _Fork(): threads and processes to follow.
 * - dlopen(), dlclose(), _exit(): code comes and goes.
 * - signal calls: programs that block, wait for or take "all signals" must not
 *   get the agent's one. To the program it looks as if the signal worked: its
 *   own action for it is kept and called when somebody else sends it.
 *
 * A hook may be called before the agent's constructor has run.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "agent.h"
#include "shstk.h"

struct next next;
struct sigaction program_action;

void *next_symbol(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

#define RESOLVE(member, name) \
	(*(void **)&next.member = next_symbol(name))

void hooks_resolve(void)
{
	RESOLVE(pthread_create, "pthread_create");
	RESOLVE(thrd_create, "thrd_create");
	RESOLVE(fork_raw, "_Fork");
	RESOLVE(exit_raw, "_exit");
	RESOLVE(dlopen, "dlopen");
	RESOLVE(dlmopen, "dlmopen");
	RESOLVE(dlclose, "dlclose");
	RESOLVE(sigaction, "sigaction");
	RESOLVE(sigprocmask, "sigprocmask");
	RESOLVE(pthread_sigmask, "pthread_sigmask");
	RESOLVE(sigwait, "sigwait");
	RESOLVE(signalfd, "signalfd");
	RESOLVE(signal, "signal");
}

#define NEXT(member) (next.member ? next.member : (hooks_resolve(), next.member))

/*
 * The start routine is left by a tail call, so that stacks of the program's
 * threads look as they do without the agent.
 */
static void *start_thread(void *arg)
{
	struct thread *t = arg;
	void *(*fn)(void *) = t->fn;
	void *fn_arg = t->arg;

	agent_begin(t);
	return fn(fn_arg);
}

static bool own_process(void)
{
	/* Not so in a child of vfork(), which shares this memory. */
	return agent.on && !agent.sandboxed && agent.pid == (int)sys0(SYS_getpid);
}

/* A slot for a thread about to be made, or NULL: it is not sampled. */
static struct thread *new_thread(void)
{
	if (!agent.on)
		return NULL;
	if (agent.sandboxed) {
		atomic_fetch_add(&agent.header->sandboxed, 1);
		return NULL;
	}
	return agent_take(0, true);
}

HOOK_API int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			    void *(*fn)(void *), void *arg)
{
	struct thread *t = new_thread();
	int ret;

	if (!t)
		return NEXT(pthread_create)(thread, attr, fn, arg);
	t->fn = fn;
	t->arg = arg;
	ret = NEXT(pthread_create)(thread, attr, start_thread, t);
	if (ret)
		agent_drop(t);
	return ret;
}

static int start_thrd(void *arg)
{
	struct thread *t = arg;
	thrd_start_t fn = (thrd_start_t)(void *)t->fn;
	void *fn_arg = t->arg;

	agent_begin(t);
	return fn(fn_arg);
}

HOOK_API int thrd_create(thrd_t *thread, thrd_start_t fn, void *arg)
{
	struct thread *t = new_thread();
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

/* fork() tells by pthread_atfork(); this one does not. */
HOOK_API pid_t _Fork(void)
{
	pid_t pid = NEXT(fork_raw) ? next.fork_raw() : fork();

	if (!pid && agent.on && !agent.sandboxed && agent.pid != (int)sys0(SYS_getpid))
		agent_fork_child();
	return pid;
}

HOOK_API void _exit(int status)
{
	if (own_process())
		agent_leave();
	NEXT(exit_raw)(status);
	__builtin_unreachable();
}

HOOK_API void _Exit(int status)
{
	_exit(status);
}

/*
 * The loader looks at the return address for the library that calls, and takes
 * that one's search path. These two are left by tail calls, so that it sees
 * the true caller; hence they can only tell that something is to be loaded.
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

	if (agent.on && !agent.sandboxed)
		maps_send_if_changed();
	ret = NEXT(dlclose)(handle);
	if (agent.on && !agent.sandboxed) {
		/* Something else may come to lie at the same addresses. */
		maps_send_if_changed();
		shstk_modules_changed();
	}
	return ret;
}

HOOK_API int sigaction(int signo, const struct sigaction *act,
		       struct sigaction *old)
{
	if (!agent.on || signo != agent.signo)
		return NEXT(sigaction)(signo, act, old);
	if (old)
		*old = program_action;
	if (act)
		program_action = *act;
	return 0;
}

HOOK_API sighandler_t signal(int signo, sighandler_t handler)
{
	sighandler_t old = program_action.sa_handler;

	if (!agent.on || signo != agent.signo)
		return NEXT(signal)(signo, handler);
	program_action = (struct sigaction){ .sa_handler = handler,
					     .sa_flags = SA_RESTART };
	return old;
}

const sigset_t *without_own(const sigset_t *set, sigset_t *copy)
{
	if (!agent.on || !set || !sigismember(set, agent.signo))
		return set;
	*copy = *set;
	sigdelset(copy, agent.signo);
	return copy;
}

/*
 * The capture library in this object blocks all signals for a moment, and
 * means it. Only the program's calls are changed.
 */
static bool own_caller(const void *caller)
{
	return caller >= (const void *)__ehdr_start &&
	       caller < (const void *)etext;
}

HOOK_API int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	sigset_t copy;

	if (how != SIG_UNBLOCK && !own_caller(__builtin_return_address(0)))
		set = without_own(set, &copy);
	return NEXT(sigprocmask)(how, set, old);
}

HOOK_API int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	sigset_t copy;

	if (how != SIG_UNBLOCK && !own_caller(__builtin_return_address(0)))
		set = without_own(set, &copy);
	return NEXT(pthread_sigmask)(how, set, old);
}

HOOK_API int sigwait(const sigset_t *set, int *signo)
{
	sigset_t copy;

	return NEXT(sigwait)(without_own(set, &copy), signo);
}

HOOK_API int signalfd(int fd, const sigset_t *set, int flags)
{
	sigset_t copy;

	return NEXT(signalfd)(fd, without_own(set, &copy), flags);
}
