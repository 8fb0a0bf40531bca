// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * wall.c - with --wall, calls that sleep must not notice the sampling.
 *
 * A signal that comes while a thread sleeps makes some system calls return
 * EINTR even with SA_RESTART (signal(7)). These hooks repeat such a call for
 * the rest of its time when nothing but the agent's signal interrupted it; the
 * handler counts those occasions in thread.ticks. Calls with a signal mask of
 * their own are race-free by that mask: the agent's signal is added to it, and
 * comes with the weight of the whole sleep when the call returns.
 *
 * By CPU time a sleeping thread gets no signal, and the hooks pass through.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"

static struct {
	int (*nanosleep)(const struct timespec *, struct timespec *);
	int (*clock_nanosleep)(clockid_t, int, const struct timespec *,
			       struct timespec *);
	int (*poll)(struct pollfd *, nfds_t, int);
	int (*ppoll)(struct pollfd *, nfds_t, const struct timespec *,
		     const sigset_t *);
	int (*select)(int, fd_set *, fd_set *, fd_set *, struct timeval *);
	int (*pselect)(int, fd_set *, fd_set *, fd_set *,
		       const struct timespec *, const sigset_t *);
	int (*epoll_wait)(int, struct epoll_event *, int, int);
	int (*epoll_pwait)(int, struct epoll_event *, int, int,
			   const sigset_t *);
	int (*sigsuspend)(const sigset_t *);
	int (*pause)(void);
} next_wall;

#define RESOLVE(name) (*(void **)&next_wall.name = next_symbol(#name))

void wall_resolve(void)
{
	RESOLVE(nanosleep);
	RESOLVE(clock_nanosleep);
	RESOLVE(poll);
	RESOLVE(ppoll);
	RESOLVE(select);
	RESOLVE(pselect);
	RESOLVE(epoll_wait);
	RESOLVE(epoll_pwait);
	RESOLVE(sigsuspend);
	RESOLVE(pause);
}

#define NEXT(name) \
	(next_wall.name ? next_wall.name : (wall_resolve(), next_wall.name))

static struct thread *sleeper(void)
{
	return agent.on && agent.wall ? agent_self() : NULL;
}

static uint32_t ticks(const struct thread *t)
{
	return atomic_load_explicit(&t->ticks, memory_order_relaxed);
}

/* Did only the agent's signal interrupt the call that failed with @error? */
static bool again(const struct thread *t, uint32_t before, int error)
{
	return error == EINTR && ticks(t) != before;
}

/* @call as often as only the agent's signal interrupts it. */
#define REPEAT(t, ret, call)						\
	do {								\
		uint32_t before_;					\
									\
		do {							\
			before_ = ticks(t);				\
			(ret) = (call);					\
		} while ((ret) < 0 && again(t, before_, errno));	\
	} while (0)

static const sigset_t *with_own(const sigset_t *mask, sigset_t *copy)
{
	if (!mask || !sleeper())
		return mask;
	*copy = *mask;
	sigaddset(copy, agent.signo);
	return copy;
}

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* Rounded up: never too short. */
static int rest_ms(int64_t deadline)
{
	int64_t left = deadline - now_ns();

	return left > 0 ? (left + 999999) / 1000000 : 0;
}

HOOK_API int nanosleep(const struct timespec *want, struct timespec *rest)
{
	struct thread *t = sleeper();
	struct timespec left;
	uint32_t before;
	int ret;

	if (!t)
		return NEXT(nanosleep)(want, rest);
	for (;; want = &left) {
		before = ticks(t);
		ret = NEXT(nanosleep)(want, &left);
		if (!ret)
			return 0;
		if (!again(t, before, errno))
			break;
	}
	if (rest && errno == EINTR)
		*rest = left;
	return ret;
}

HOOK_API int clock_nanosleep(clockid_t clock, int flags,
			     const struct timespec *want,
			     struct timespec *rest)
{
	struct thread *t = sleeper();
	struct timespec left;
	uint32_t before;
	int ret;

	if (!t)
		return NEXT(clock_nanosleep)(clock, flags, want, rest);
	for (;;) {
		before = ticks(t);
		ret = NEXT(clock_nanosleep)(clock, flags, want, &left);
		if (!again(t, before, ret))
			break;
		if (!(flags & TIMER_ABSTIME))
			want = &left;
	}
	if (rest && ret == EINTR && !(flags & TIMER_ABSTIME))
		*rest = left;
	return ret;
}

HOOK_API int usleep(useconds_t us)
{
	struct timespec ts = { .tv_sec = us / 1000000,
			       .tv_nsec = us % 1000000 * 1000L };

	return nanosleep(&ts, NULL);
}

HOOK_API unsigned int sleep(unsigned int seconds)
{
	struct timespec ts = { .tv_sec = seconds };
	int error = errno;

	if (nanosleep(&ts, &ts))
		return ts.tv_sec + (ts.tv_nsec >= 500000000);
	errno = error;
	return 0;
}

HOOK_API int poll(struct pollfd *fds, nfds_t nr, int timeout)
{
	struct thread *t = sleeper();
	int64_t deadline;
	uint32_t before;
	int ret;

	if (!t)
		return NEXT(poll)(fds, nr, timeout);
	deadline = timeout > 0 ? now_ns() + timeout * 1000000LL : 0;
	for (;;) {
		before = ticks(t);
		ret = NEXT(poll)(fds, nr, timeout);
		if (ret >= 0 || !again(t, before, errno))
			return ret;
		if (timeout > 0)
			timeout = rest_ms(deadline);
	}
}

HOOK_API int epoll_wait(int fd, struct epoll_event *events, int max,
			int timeout)
{
	struct thread *t = sleeper();
	int64_t deadline;
	uint32_t before;
	int ret;

	if (!t)
		return NEXT(epoll_wait)(fd, events, max, timeout);
	deadline = timeout > 0 ? now_ns() + timeout * 1000000LL : 0;
	for (;;) {
		before = ticks(t);
		ret = NEXT(epoll_wait)(fd, events, max, timeout);
		if (ret >= 0 || !again(t, before, errno))
			return ret;
		if (timeout > 0)
			timeout = rest_ms(deadline);
	}
}

/* Linux leaves the rest of the time in @timeout, and the sets as they were. */
HOOK_API int select(int nr, fd_set *in, fd_set *out, fd_set *except,
		    struct timeval *timeout)
{
	struct thread *t = sleeper();
	uint32_t before;
	int ret;

	if (!t)
		return NEXT(select)(nr, in, out, except, timeout);
	do {
		before = ticks(t);
		ret = NEXT(select)(nr, in, out, except, timeout);
	} while (ret < 0 && again(t, before, errno));
	return ret;
}

HOOK_API int pause(void)
{
	struct thread *t = sleeper();
	int ret;

	if (!t)
		return NEXT(pause)();
	REPEAT(t, ret, NEXT(pause)());
	return ret;
}

HOOK_API int sigsuspend(const sigset_t *mask)
{
	sigset_t copy;

	return NEXT(sigsuspend)(with_own(mask, &copy));
}

/* What is left of @timeout, which began at @start. */
static const struct timespec *rest_of(const struct timespec *timeout,
				      int64_t start, struct timespec *rest)
{
	int64_t left;

	if (!timeout)
		return NULL;
	left = (int64_t)timeout->tv_sec * 1000000000 + timeout->tv_nsec -
	       (now_ns() - start);
	if (left < 0)
		left = 0;
	rest->tv_sec = left / 1000000000;
	rest->tv_nsec = left % 1000000000;
	return rest;
}

HOOK_API int ppoll(struct pollfd *fds, nfds_t nr,
		   const struct timespec *timeout, const sigset_t *mask)
{
	struct thread *t = sleeper();
	int64_t start;
	struct timespec rest;
	sigset_t copy;
	int ret;

	if (!t || mask)
		return NEXT(ppoll)(fds, nr, timeout, with_own(mask, &copy));
	start = now_ns();
	REPEAT(t, ret, NEXT(ppoll)(fds, nr, rest_of(timeout, start, &rest), NULL));
	return ret;
}

HOOK_API int pselect(int nr, fd_set *in, fd_set *out, fd_set *except,
		     const struct timespec *timeout, const sigset_t *mask)
{
	struct thread *t = sleeper();
	int64_t start;
	struct timespec rest;
	sigset_t copy;
	int ret;

	if (!t || mask)
		return NEXT(pselect)(nr, in, out, except, timeout,
				     with_own(mask, &copy));
	start = now_ns();
	REPEAT(t, ret, NEXT(pselect)(nr, in, out, except,
				     rest_of(timeout, start, &rest), NULL));
	return ret;
}

HOOK_API int epoll_pwait(int fd, struct epoll_event *events, int max,
			 int timeout, const sigset_t *mask)
{
	sigset_t copy;

	if (!mask)
		return epoll_wait(fd, events, max, timeout);
	return NEXT(epoll_pwait)(fd, events, max, timeout,
				 with_own(mask, &copy));
}
