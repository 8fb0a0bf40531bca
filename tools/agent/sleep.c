// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sleep.c - calls that sleep must not notice the sampling.
 *
 * A signal makes some system calls return EINTR even with SA_RESTART (signal(7)).
 * With --wall the agent's one comes while a thread sleeps. By CPU time a thread that
 * sleeps gets none, but for the first one, which is asked to look for new threads; and
 * kernels without POSIX_CPU_TIMERS_TASK_WORK send it inside system calls. The hooks
 * repeat such a call for the rest of its time when nothing but the agent's signal ended
 * it, which the handler finds out: the context it gets is that of a system call that
 * has failed so, and no other signal is about to be delivered. One that only the signal
 * mask of the call lets in comes as soon as that is repeated.
 *
 * Once the program has given up system calls it can't be found out, and no more is done
 * than to block the agent's signal where a call has a mask.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <threads.h>
#include <time.h>
#include <ucontext.h>
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
	int (*epoll_pwait2)(int, struct epoll_event *, int,
			    const struct timespec *, const sigset_t *);
	int (*poll_chk)(struct pollfd *, nfds_t, int, size_t);
	int (*ppoll_chk)(struct pollfd *, nfds_t, const struct timespec *,
			 const sigset_t *, size_t);
	int (*sigsuspend)(const sigset_t *);
	int (*sigtimedwait)(const sigset_t *, siginfo_t *,
			    const struct timespec *);
	int (*pause)(void);
	int (*semop)(int, struct sembuf *, size_t);
	int (*semtimedop)(int, struct sembuf *, size_t, const struct timespec *);
	int (*msgsnd)(int, const void *, size_t, int);
	ssize_t (*msgrcv)(int, void *, size_t, long, int);
} next_sleep;

#define RESOLVE(name) (*(void **)&next_sleep.name = next_symbol(#name))

void sleep_resolve(void)
{
	RESOLVE(nanosleep);
	RESOLVE(clock_nanosleep);
	RESOLVE(poll);
	RESOLVE(ppoll);
	RESOLVE(select);
	RESOLVE(pselect);
	RESOLVE(epoll_wait);
	RESOLVE(epoll_pwait);
	RESOLVE(epoll_pwait2);
	*(void **)&next_sleep.poll_chk = next_symbol("__poll_chk");
	*(void **)&next_sleep.ppoll_chk = next_symbol("__ppoll_chk");
	RESOLVE(sigsuspend);
	RESOLVE(sigtimedwait);
	RESOLVE(pause);
	RESOLVE(semop);
	RESOLVE(semtimedop);
	RESOLVE(msgsnd);
	RESOLVE(msgrcv);
}

#define NEXT(name) \
	(next_sleep.name ? next_sleep.name : (sleep_resolve(), next_sleep.name))

/*
 * From one of the hooks to the system call of libc's function behind it takes less
 * stack than this; a signal's frame and the red zone before it take more.
 */
#define CALL_STACK 1024

static struct thread *sleeper(void)
{
	return agent.on && !agent.sandboxed ? agent_self() : NULL;
}

void sleep_cut(struct thread *t, const void *context)
{
	const ucontext_t *uc = context;
	uint64_t pending = 0, blocked, sp;
	int64_t ret;

#if defined(__x86_64__)
	ret = uc->uc_mcontext.gregs[REG_RAX];
	sp = (uint64_t)uc->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
	ret = (int64_t)uc->uc_mcontext.regs[0];
	sp = uc->uc_mcontext.sp;
#else
#error "which registers have the result of a system call, and the stack pointer?"
#endif
	if (ret != -EINTR || agent.sandboxed)
		return;
	/*
	 * The program's signals that came first have their handlers entered: then it
	 * is not the system call's context. Those that came later are pending.
	 */
	memcpy(&blocked, &uc->uc_sigmask, sizeof(blocked));
	sys2(SYS_rt_sigpending, &pending, sizeof(pending));
	if (!(pending & ~blocked))
		atomic_store_explicit(&t->cut, sp, memory_order_relaxed);
}

static void begin(struct thread *t)
{
	if (t)
		atomic_store_explicit(&t->cut, 0, memory_order_relaxed);
}

/*
 * Did only the agent's signal interrupt the call that failed with @error? That of this
 * function it must be, not one that a handler of the program made meanwhile.
 */
static inline __attribute__((always_inline))
bool again(const struct thread *t, int error)
{
	return t && error == EINTR &&
	       (uintptr_t)__builtin_frame_address(0) -
			       atomic_load_explicit(&t->cut, memory_order_relaxed) <
		       CALL_STACK;
}

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* What is left of @timeout, milliseconds, rounded up: never too short. */
static int rest_ms(int timeout, int64_t deadline)
{
	int64_t left;

	if (timeout <= 0)
		return timeout;
	left = deadline - now_ns();
	return left > 0 ? (left + 999999) / 1000000 : 0;
}

/* What is left of @timeout, which began at @start. */
static const struct timespec *rest_of(const struct timespec *timeout,
				      int64_t start, struct timespec *rest)
{
	int64_t left;

	if (!timeout || timeout->tv_sec > INT32_MAX)	/* or as good as */
		return timeout;
	left = (int64_t)timeout->tv_sec * 1000000000 + timeout->tv_nsec -
	       (now_ns() - start);
	if (left < 0)
		left = 0;
	rest->tv_sec = left / 1000000000;
	rest->tv_nsec = left % 1000000000;
	return rest;
}

/*
 * The value of @call, made as often as only the agent's signal interrupts it, with @rest
 * before it is made again. Once, if @t is NULL.
 */
#define REPEAT_WITH(t, rest, call)					\
({									\
	__typeof__(call) ret_;						\
									\
	for (;; (rest)) {						\
		begin(t);						\
		ret_ = (call);						\
		if (ret_ >= 0 || !again(t, errno))			\
			break;						\
	}								\
	ret_;								\
})

#define REPEAT(call)							\
({									\
	struct thread *t_ = sleeper();					\
									\
	REPEAT_WITH(t_, (void)0, call);					\
})

/* @timeout, which is a variable, has the rest of the time then, in milliseconds. */
#define REPEAT_MS(timeout, call)					\
({									\
	struct thread *t_ = sleeper();					\
	int64_t deadline_ = t_ && (timeout) > 0 ?			\
		now_ns() + (timeout) * 1000000LL : 0;			\
									\
	REPEAT_WITH(t_, (timeout) = rest_ms(timeout, deadline_), call);	\
})

/* The same; @timeout, which is a variable, points to the rest then. */
#define REPEAT_TS(timeout, call)					\
({									\
	const struct timespec *whole_ = (timeout);			\
	struct thread *t_ = sleeper();					\
	int64_t start_ = t_ && whole_ ? now_ns() : 0;			\
	struct timespec rest_;						\
									\
	REPEAT_WITH(t_, (timeout) = rest_of(whole_, start_, &rest_), call); \
})

/* What the call is to have for @mask; @copy has room for it. */
static const sigset_t *call_mask(const sigset_t *mask, sigset_t *copy)
{
	if (!agent.sandboxed)
		return without_own(mask, copy);
	if (!agent.on || !mask)
		return mask;
	*copy = *mask;
	sigaddset(copy, agent.signo);
	return copy;
}

HOOK_API int nanosleep(const struct timespec *want, struct timespec *rest)
{
	struct thread *t = sleeper();
	struct timespec left;
	int ret;

	if (!t)
		return NEXT(nanosleep)(want, rest);
	for (;; want = &left) {
		begin(t);
		ret = NEXT(nanosleep)(want, &left);
		if (!ret)
			return 0;
		if (!again(t, errno))
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
	int ret;

	if (!t)
		return NEXT(clock_nanosleep)(clock, flags, want, rest);
	for (;;) {
		begin(t);
		ret = NEXT(clock_nanosleep)(clock, flags, want, &left);
		if (!again(t, ret))
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

HOOK_API int thrd_sleep(const struct timespec *want, struct timespec *rest)
{
	int error = errno, ret = 0;

	if (nanosleep(want, rest))
		ret = errno == EINTR ? -1 : -2;
	errno = error;
	return ret;
}

HOOK_API int poll(struct pollfd *fds, nfds_t nr, int timeout)
{
	return REPEAT_MS(timeout, NEXT(poll)(fds, nr, timeout));
}

HOOK_API int epoll_wait(int fd, struct epoll_event *events, int max,
			int timeout)
{
	return REPEAT_MS(timeout, NEXT(epoll_wait)(fd, events, max, timeout));
}

/* Linux leaves the rest of the time in @timeout, and the sets as they were. */
HOOK_API int select(int nr, fd_set *in, fd_set *out, fd_set *except,
		    struct timeval *timeout)
{
	return REPEAT(NEXT(select)(nr, in, out, except, timeout));
}

HOOK_API int pause(void)
{
	return REPEAT(NEXT(pause)());
}

HOOK_API int sigsuspend(const sigset_t *mask)
{
	sigset_t copy;

	mask = call_mask(mask, &copy);
	return REPEAT(NEXT(sigsuspend)(mask));
}

HOOK_API int ppoll(struct pollfd *fds, nfds_t nr,
		   const struct timespec *timeout, const sigset_t *mask)
{
	sigset_t copy;

	mask = call_mask(mask, &copy);
	return REPEAT_TS(timeout, NEXT(ppoll)(fds, nr, timeout, mask));
}

HOOK_API int pselect(int nr, fd_set *in, fd_set *out, fd_set *except,
		     const struct timespec *timeout, const sigset_t *mask)
{
	sigset_t copy;

	mask = call_mask(mask, &copy);
	return REPEAT_TS(timeout,
		  NEXT(pselect)(nr, in, out, except, timeout, mask));
}

HOOK_API int epoll_pwait(int fd, struct epoll_event *events, int max,
			 int timeout, const sigset_t *mask)
{
	sigset_t copy;

	mask = call_mask(mask, &copy);
	return REPEAT_MS(timeout,
		  NEXT(epoll_pwait)(fd, events, max, timeout, mask));
}

HOOK_API int epoll_pwait2(int fd, struct epoll_event *events, int max,
			  const struct timespec *timeout, const sigset_t *mask)
{
	sigset_t copy;

	mask = call_mask(mask, &copy);
	return REPEAT_TS(timeout,
		  NEXT(epoll_pwait2)(fd, events, max, timeout, mask));
}

/* What programs built with _FORTIFY_SOURCE call. */
int __poll_chk(struct pollfd *fds, nfds_t nr, int timeout, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t nr, const struct timespec *timeout,
		const sigset_t *mask, size_t size);

HOOK_API int __poll_chk(struct pollfd *fds, nfds_t nr, int timeout, size_t size)
{
	if (size / sizeof(*fds) < nr)	/* which ends the program */
		return NEXT(poll_chk)(fds, nr, timeout, size);
	return poll(fds, nr, timeout);
}

HOOK_API int __ppoll_chk(struct pollfd *fds, nfds_t nr,
			 const struct timespec *timeout, const sigset_t *mask,
			 size_t size)
{
	if (size / sizeof(*fds) < nr)
		return NEXT(ppoll_chk)(fds, nr, timeout, mask, size);
	return ppoll(fds, nr, timeout, mask);
}

HOOK_API int sigtimedwait(const sigset_t *set, siginfo_t *info,
			  const struct timespec *timeout)
{
	sigset_t copy;

	set = without_own(set, &copy);
	return REPEAT_TS(timeout, NEXT(sigtimedwait)(set, info, timeout));
}

HOOK_API int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	return sigtimedwait(set, info, NULL);
}

HOOK_API int semop(int id, struct sembuf *ops, size_t nr)
{
	return REPEAT(NEXT(semop)(id, ops, nr));
}

HOOK_API int semtimedop(int id, struct sembuf *ops, size_t nr,
			const struct timespec *timeout)
{
	return REPEAT_TS(timeout, NEXT(semtimedop)(id, ops, nr, timeout));
}

HOOK_API int msgsnd(int id, const void *message, size_t size, int flags)
{
	return REPEAT(NEXT(msgsnd)(id, message, size, flags));
}

HOOK_API ssize_t msgrcv(int id, void *message, size_t size, long type, int flags)
{
	return REPEAT(NEXT(msgrcv)(id, message, size, type, flags));
}
