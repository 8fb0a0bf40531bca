// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * wait.c - hooks of the calls that wait, so that the sampling does not end them early.
 *
 * The kernel ends some of the calls that wait with EINTR whenever a handler ran meanwhile, even a
 * handler with SA_RESTART (signal(7)). To repeat such a call, the agent would have to prove that no
 * handler of the program ran since the call began, up to the very instruction that enters the
 * kernel again; otherwise the signal that was to end the call is lost and the program hangs. So the
 * call is not interrupted at all: the agent's signal is blocked from before the call until after
 * it. Handlers of the program that run in between unblock it (signals.c).
 *
 * The timer goes on and counts. Its signal comes after the call, and its periods are charged to the
 * call. With CPU time these are few. With wall-clock time the stack is captured before the call, as
 * the recorder may end first (agent_open_wait()).
 *
 * The kernel restarts all other calls by itself. The one thing that it cannot know is that the
 * signal that comes next was to end the call; signals.c mends that.
 *
 * A call that moves many bytes is cut short by any signal that comes while it waits for room or for
 * more bytes: the kernel restarts a call only if it has moved nothing yet. Such calls are not
 * interrupted either.
 *
 * A handler of the program may run in the hook, before the call is made, and the program has made
 * its call by then: the handler was to end it. Where that has one result, the hook returns it.
 * Otherwise, as for a write that has room for a part, the call is made and interrupted at once, by
 * the agent's signal: the kernel then does what it would have done (knock_begin()).
 *
 * Once the program has given up system calls, the hooks only block the agent's signal in calls that
 * have a mask.
 */
#undef _FORTIFY_SOURCE /* It defines functions by the names of those below. */
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "../common/peek.h"
#include "agent.h"

/* The first function is libaio's; programs built with _FORTIFY_SOURCE call the others. */
struct io_event;
typedef struct io_context *io_context_t;
int io_getevents(io_context_t context, long min, long max, struct io_event *events,
		 struct timespec *timeout);
int __poll_chk(struct pollfd *fds, nfds_t nr, int timeout, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t nr, const struct timespec *timeout, const sigset_t *mask,
		size_t size);
ssize_t __read_chk(int fd, void *buf, size_t size, size_t room);
ssize_t __recv_chk(int fd, void *buf, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t size, size_t room, int flags,
		       struct sockaddr *from, socklen_t *from_size);
/* Programs built for X/Open call this for sigpause(). */
int __xpg_sigpause(int signo);

/* A socket of this process may have a timeout: the kernel does not restart calls on it. */
static _Atomic bool socket_timeouts;

/*
 * Returns whether a signal may cut short a call that moves @size bytes to @fd. A file, which has a
 * position, is never cut short. A pipe takes up to PIPE_BUF bytes at once, or none.
 */
static bool may_cut(int fd, size_t size)
{
	if (size <= PIPE_BUF || socket_timeouts || !agent.on || in_sandbox())
		return socket_timeouts;
	return sys3(SYS_lseek, fd, 0, SEEK_CUR) < 0;
}

/*
 * Returns whether a call with these flags may wait. For a call that sends messages that is all that
 * is asked: to count the bytes of a message takes as long as to block the signal.
 */
static bool may_wait(int flags)
{
	return !(flags & MSG_DONTWAIT);
}

static bool sends_much(size_t size, int flags)
{
	return may_wait(flags) && (size > PIPE_BUF || socket_timeouts);
}

static bool wants_all(int flags)
{
	return may_wait(flags) && ((flags & MSG_WAITALL) || socket_timeouts);
}

/*
 * Returns whether recvmmsg() waits for more when it has a message. A signal that comes then ends it,
 * and the next call on the socket fails with ERESTARTSYS, which no program knows.
 */
static bool wants_more(unsigned int nr, int flags)
{
	return nr > 1 && may_wait(flags) && !(flags & MSG_WAITFORONE);
}

static const struct timespec at_once;

/* clang-format off */

/*
 * All calls that signal(7) lists as never restarted, and those that libc builds on them. The fields
 * are: type, name, parameters, arguments, when the call may wait, and what it returns if a handler
 * of the program ran in the hook before the call was made: what the kernel returns if such a handler
 * ends the wait, unless the call need not wait. (Without the last one, the call is made; if it waits
 * then, it is interrupted.) Calls with
 * a mask, and calls that can be asked first whether they would wait, are further down.
 */
#define EACH_WAIT(CALL)								\
	CALL(int, nanosleep, (const struct timespec *want, struct timespec *rest), \
	     (want, rest), true, not_slept(want, rest))				\
	CALL(int, clock_nanosleep, (clockid_t clock, int flags,			\
				    const struct timespec *want, struct timespec *rest), \
	     (clock, flags, want, rest), true,					\
	     (not_slept(want, flags & TIMER_ABSTIME ? NULL : rest), EINTR))	\
	CALL(int, usleep, (useconds_t us), (us), true, interrupted())		\
	CALL(unsigned int, sleep, (unsigned int s), (s), s > 0, s)			\
	CALL(int, thrd_sleep, (const struct timespec *want, struct timespec *rest), \
	     (want, rest), true, not_slept(want, rest))				\
	CALL(int, pause, (void), (), true, interrupted())			\
	CALL(int, __xpg_sigpause, (int signo), (signo), true, interrupted())	\
	CALL(int, semop, (int id, struct sembuf *ops, size_t nr), (id, ops, nr), true, \
	     ended_by(NEXT(semtimedop)(id, ops, nr, &at_once), may_block(ops) * EAGAIN)) \
	CALL(int, semtimedop, (int id, struct sembuf *ops, size_t nr,		\
			       const struct timespec *timeout),			\
	     (id, ops, nr, timeout), true,					\
	     ended_by(function(id, ops, nr, &at_once), may_block(ops) * EAGAIN)) \
	CALL(int, msgsnd, (int id, const void *message, size_t size, int flags), \
	     (id, message, size, flags), !(flags & IPC_NOWAIT),			\
	     ended_by(function(id, message, size, flags | IPC_NOWAIT), EAGAIN))	\
	CALL(ssize_t, msgrcv, (int id, void *message, size_t size, long type, int flags), \
	     (id, message, size, type, flags), !(flags & IPC_NOWAIT),		\
	     ended_by(function(id, message, size, type, flags | IPC_NOWAIT), ENOMSG)) \
	CALL(int, sem_timedwait, (sem_t *sem, const struct timespec *until),	\
	     (sem, until), true, ended_by(function(sem, &at_once), ETIMEDOUT))	\
	CALL(int, sem_clockwait, (sem_t *sem, clockid_t clock,			\
				  const struct timespec *until),		\
	     (sem, clock, until), true, ended_by(function(sem, clock, &at_once), ETIMEDOUT)) \
	CALL(int, aio_suspend, (const struct aiocb *const list[], int nr,	\
				const struct timespec *timeout),		\
	     (list, nr, timeout), true, ended_by(function(list, nr, &at_once), EAGAIN)) \
	CALL(int, gai_suspend, (const struct gaicb *const list[], int nr,	\
				const struct timespec *timeout),		\
	     (list, nr, timeout), true, gai_ended(function(list, nr, &at_once))) \
	CALL(int, accept, (int fd, struct sockaddr *from, socklen_t *size),	\
	     (fd, from, size), socket_timeouts,					\
	     ends(fd, POLLIN) ? interrupted() : function(fd, from, size))	\
	CALL(int, accept4, (int fd, struct sockaddr *from, socklen_t *size, int flags), \
	     (fd, from, size, flags), socket_timeouts,				\
	     ends(fd, POLLIN) ? interrupted() : function(fd, from, size, flags)) \
	CALL(int, connect, (int fd, const struct sockaddr *to, socklen_t size),	\
	     (fd, to, size), socket_timeouts)					\
	CALL(ssize_t, recv, (int fd, void *buf, size_t size, int flags),	\
	     (fd, buf, size, flags), wants_all(flags),				\
	     ends(fd, POLLIN) ? interrupted() : function(fd, buf, size, some(flags))) \
	CALL(ssize_t, __recv_chk, (int fd, void *buf, size_t size, size_t room, int flags), \
	     (fd, buf, size, room, flags), wants_all(flags),			\
	     ends(fd, POLLIN) ? interrupted() : function(fd, buf, size, room, some(flags))) \
	CALL(ssize_t, recvfrom, (int fd, void *buf, size_t size, int flags,	\
				 struct sockaddr *from, socklen_t *from_size),	\
	     (fd, buf, size, flags, from, from_size), wants_all(flags),		\
	     ends(fd, POLLIN) ? interrupted() :					\
				function(fd, buf, size, some(flags), from, from_size)) \
	CALL(ssize_t, __recvfrom_chk, (int fd, void *buf, size_t size, size_t room, \
				       int flags, struct sockaddr *from,	\
				       socklen_t *from_size),			\
	     (fd, buf, size, room, flags, from, from_size), wants_all(flags),	\
	     ends(fd, POLLIN) ? interrupted() :					\
				function(fd, buf, size, room, some(flags), from, from_size)) \
	CALL(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags),	\
	     (fd, message, flags), wants_all(flags),				\
	     ends(fd, POLLIN) ? interrupted() : function(fd, message, some(flags))) \
	CALL(int, recvmmsg, (int fd, struct mmsghdr *messages, unsigned int nr, int flags, \
			     struct timespec *timeout),				\
	     (fd, messages, nr, flags, timeout),				\
	     (timeout && may_wait(flags)) || wants_all(flags) || wants_more(nr, flags), \
	     ends(fd, POLLIN) ? interrupted() :					\
				function(fd, messages, nr, some_messages(flags), timeout)) \
	CALL(ssize_t, send, (int fd, const void *buf, size_t size, int flags),	\
	     (fd, buf, size, flags), sends_much(size, flags),			\
	     ends(fd, POLLOUT) ? interrupted() : function(fd, buf, size, flags)) \
	CALL(ssize_t, sendto, (int fd, const void *buf, size_t size, int flags,	\
			       const struct sockaddr *to, socklen_t to_size),	\
	     (fd, buf, size, flags, to, to_size), sends_much(size, flags),	\
	     ends(fd, POLLOUT) ? interrupted() : function(fd, buf, size, flags, to, to_size)) \
	CALL(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), \
	     (fd, message, flags), may_wait(flags),				\
	     ends(fd, POLLOUT) ? interrupted() : function(fd, message, flags))	\
	CALL(int, sendmmsg, (int fd, struct mmsghdr *messages, unsigned int nr, int flags), \
	     (fd, messages, nr, flags), may_wait(flags),			\
	     ends(fd, POLLOUT) ? interrupted() : function(fd, messages, nr, flags)) \
	CALL(ssize_t, sendfile, (int to, int from, off_t *at, size_t size),	\
	     (to, from, at, size), may_cut(to, size),				\
	     ends(to, POLLOUT) ? interrupted() : function(to, from, at, size))	\
	CALL(ssize_t, sendfile64, (int to, int from, off64_t *at, size_t size),	\
	     (to, from, at, size), may_cut(to, size),				\
	     ends(to, POLLOUT) ? interrupted() : function(to, from, at, size))	\
	CALL(ssize_t, read, (int fd, void *buf, size_t size), (fd, buf, size),	\
	     socket_timeouts, ends(fd, POLLIN) ? interrupted() : function(fd, buf, size)) \
	CALL(ssize_t, __read_chk, (int fd, void *buf, size_t size, size_t room), \
	     (fd, buf, size, room), socket_timeouts,				\
	     ends(fd, POLLIN) ? interrupted() : function(fd, buf, size, room))	\
	CALL(ssize_t, readv, (int fd, const struct iovec *iov, int nr), (fd, iov, nr), \
	     socket_timeouts, ends(fd, POLLIN) ? interrupted() : function(fd, iov, nr)) \
	CALL(ssize_t, write, (int fd, const void *buf, size_t size), (fd, buf, size), \
	     may_cut(fd, size), ends(fd, POLLOUT) ? interrupted() : function(fd, buf, size)) \
	CALL(ssize_t, writev, (int fd, const struct iovec *iov, int nr), (fd, iov, nr), \
	     may_cut(fd, SIZE_MAX), ends(fd, POLLOUT) ? interrupted() : function(fd, iov, nr))

/* Calls that set a mask for the time of the call. */
#define EACH_MASKED_WAIT(CALL)							\
	CALL(int, sigsuspend, (const sigset_t *mask), (mask))

/*
 * Calls that can be asked whether they would wait, by the arguments that come second. Then an event
 * loop that always has events need not block the signal each time (which took poll() from 1.3 to
 * 3.6 us). select() is below.
 */
#define EACH_WAIT_IF_IDLE(CALL)							\
	CALL(int, poll, (struct pollfd *fds, nfds_t nr, int timeout),		\
	     (fds, nr, timeout), (fds, nr, 0), timeout)				\
	CALL(int, __poll_chk, (struct pollfd *fds, nfds_t nr, int timeout, size_t size), \
	     (fds, nr, timeout, size), (fds, nr, 0, size), timeout)		\
	CALL(int, epoll_wait, (int fd, struct epoll_event *events, int max, int timeout), \
	     (fd, events, max, timeout), (fd, events, max, 0), timeout)

#define EACH_MASKED_WAIT_IF_IDLE(CALL)						\
	CALL(int, ppoll, (struct pollfd *fds, nfds_t nr, const struct timespec *timeout, \
			  const sigset_t *mask),				\
	     (fds, nr, timeout, mask), (fds, nr, &at_once, mask), is_time(timeout)) \
	CALL(int, __ppoll_chk, (struct pollfd *fds, nfds_t nr,			\
				const struct timespec *timeout,			\
				const sigset_t *mask, size_t size),		\
	     (fds, nr, timeout, mask, size), (fds, nr, &at_once, mask, size),	\
	     is_time(timeout))							\
	CALL(int, epoll_pwait, (int fd, struct epoll_event *events, int max, int timeout, \
				const sigset_t *mask),				\
	     (fd, events, max, timeout, mask), (fd, events, max, 0, mask), true) \
	CALL(int, epoll_pwait2, (int fd, struct epoll_event *events, int max,	\
				 const struct timespec *timeout, const sigset_t *mask), \
	     (fd, events, max, timeout, mask), (fd, events, max, &at_once, mask), \
	     !timeout || (on_stack(timeout, sizeof(*timeout)) && is_time(timeout)))

/* Calls that change the sets that they are given (struct sets). */
#define EACH_SELECT(CALL)							\
	CALL(int, select, (int nr, fd_set *in, fd_set *out, fd_set *except,	\
			   struct timeval *timeout))				\
	CALL(int, pselect, (int nr, fd_set *in, fd_set *out, fd_set *except,	\
			    const struct timespec *timeout, const sigset_t *mask))

/*
 * Returns whether @timeout is a valid time. If not, the call itself reports the error. libc's
 * ppoll() reads the timeout too.
 */
static bool is_time(const struct timespec *timeout)
{
	return !timeout || (timeout->tv_sec >= 0 &&
			    (unsigned long)timeout->tv_nsec < 1000000000);
}

/* Calls that wait for the signals of a set; the agent's signal is never in that set. */
#define EACH_WAIT_FOR_SIGNAL(CALL)						\
	CALL(int, sigwait, (const sigset_t *set, int *signo), (set, signo))	\
	CALL(int, sigwaitinfo, (const sigset_t *set, siginfo_t *info), (set, info)) \
	CALL(int, sigtimedwait, (const sigset_t *set, siginfo_t *info,		\
				 const struct timespec *timeout),		\
	     (set, info, timeout))
/* clang-format on */

#define DECLARE(type, name, params, ...) type(*name) params;

static struct {
	EACH_WAIT(DECLARE)
	EACH_MASKED_WAIT(DECLARE)
	EACH_WAIT_IF_IDLE(DECLARE)
	EACH_MASKED_WAIT_IF_IDLE(DECLARE)
	EACH_WAIT_FOR_SIGNAL(DECLARE)
	EACH_SELECT(DECLARE)
	int (*setsockopt)(int, int, int, const void *, socklen_t);
	int (*io_getevents)(io_context_t, long, long, struct io_event *, struct timespec *);
} next_wait;

#define RESOLVE(type, name, ...) *(void **)&next_wait.name = next_symbol(#name);

void wait_resolve(void)
{
	EACH_WAIT(RESOLVE)
	EACH_MASKED_WAIT(RESOLVE)
	EACH_WAIT_IF_IDLE(RESOLVE)
	EACH_MASKED_WAIT_IF_IDLE(RESOLVE)
	EACH_WAIT_FOR_SIGNAL(RESOLVE)
	EACH_SELECT(RESOLVE)
	RESOLVE(int, setsockopt)
	/*
	 * io_getevents() is libaio's; to look for a symbol that is missing takes longer than all
	 * others, so its hook does that.
	 */
}

/*
 * Returns the next function by that name. A hook may be called before the agent's constructor has
 * run, by an allocator that starts. Then only this one name is looked up, because the loader
 * allocates memory when it does not find a name.
 */
#define NEXT(name)                                                      \
	({                                                              \
		if (unlikely(!next_wait.name))                          \
			*(void **)&next_wait.name = next_symbol(#name); \
		next_wait.name;                                         \
	})

/**
 * struct wait - a call that waits
 * @outer: local.waits_in before the call.
 * @outer_ends: local.handler_ends before the call.
 * @on: local.waits_in was changed.
 * @blocked: the agent's signal was blocked.
 * @signo: the number of the agent's signal at that time.
 * @saved_errno: errno before the call was asked whether it would wait.
 */
struct wait {
	const void *outer;
	bool outer_ends;
	bool on;
	bool blocked;
	int signo;
	int saved_errno;
};

/* Returns whether the agent sends this thread no signals, because it is traced (relatives.c). */
static bool is_left_alone(void)
{
	const struct agent_thread *t = unlikely(agent.traced) ? agent_self() : NULL;

	return unlikely(agent.traced) && !(t && t->armed);
}

/* Begins to notice handlers of the program that run. */
static void enter_wait(struct wait *w, const void *function)
{
	held_mend();
	w->on = agent.on && !in_sandbox() && !agent.shared && !is_held() && !is_relative() &&
		!is_left_alone();
	if (!w->on)
		return;
	w->signo = agent_signo();
	w->outer = local.waits_in;
	w->outer_ends = local.handler_ends;
	/* A handler that comes in between must not be noticed without what it does to the call. */
	local.handler_ends = false;
	atomic_signal_fence(memory_order_seq_cst);
	local.waits_in = function;
}

static void leave_wait(const struct wait *w)
{
	local.waits_in = w->outer;
	/* Never stores false: a handler may have come in between. */
	if (w->outer_ends)
		local.handler_ends = true;
}

/*
 * Prepares for a wait in libc's @function. Blocks the agent's signal if @block, or captures the
 * stack with wall-clock time.
 */
static void begin(struct wait *w, const void *function, bool block)
{
	if (!w->on)
		enter_wait(w, function);
	w->blocked = w->on && (block || agent.wall);
	if (w->blocked && !agent.wall)
		change_agent_signal(SIG_BLOCK);
	else if (w->blocked)
		agent_open_wait(function);
}

/*
 * Returns whether a handler of the program ran since begin(). As the program has already made its
 * call, the call is ended: that signal may be all that it waits for. Users of calls without a mask,
 * like pause(), may assume that such a call begins within a microsecond, but a first capture, with
 * wall-clock time, can take milliseconds.
 */
static bool handled(const struct wait *w)
{
	return w->on && !local.waits_in;
}

static int interrupted(void)
{
	errno = EINTR;
	return -1;
}

static int not_slept(const struct timespec *want, struct timespec *rest)
{
	if (rest && !peek(rest, want, sizeof(*rest))) {
		errno = EFAULT;
		return -1;
	}
	return interrupted();
}

/*
 * Returns the result @ret of a call that was made without waiting, because a handler ran before it.
 * The error @would_wait says that it would have waited; then the handler ended it.
 */
static ssize_t ended_by(ssize_t ret, int would_wait)
{
	if (ret < 0 && errno == would_wait)
		errno = EINTR;
	return ret;
}

static int gai_ended(int ret)
{
	return ret == EAI_AGAIN ? EAI_INTR : ret;
}

/* Returns whether the operations may wait: an error of those that may not is the program's. */
static bool may_block(const struct sembuf *ops)
{
	struct sembuf first;

	return peek(&first, ops, sizeof(first)) && !(first.sem_flg & IPC_NOWAIT);
}

/*
 * Returns whether a call would wait for @events. The agent's signal, which comes meanwhile
 * (knock_begin()), ends even a question that does not wait.
 */
static bool would_wait(int fd, int events)
{
	struct pollfd poll = { .fd = fd, .events = (short)events };
	long ret;

	do
		ret = sys6(SYS_ppoll, (long)&poll, 1, (long)&at_once, 0, 0, 0);
	while (ret == -EINTR);
	return !ret && !(sys2(SYS_fcntl, fd, F_GETFL) & O_NONBLOCK);
}

/*
 * Returns whether a handler that ran before the call ends it: its action has no SA_RESTART, and the
 * call would wait for @events.
 */
static bool ends(int fd, int events)
{
	return local.handler_ends && would_wait(fd, events);
}

/* Returns @flags for a call that a handler has ended: what is there is all that it gets. */
static int some(int flags)
{
	return local.handler_ends ? flags & ~MSG_WAITALL : flags;
}

/* The same for recvmmsg(). */
static int some_messages(int flags)
{
	return local.handler_ends ? some(flags) | MSG_WAITFORONE : flags;
}

/*
 * Unblocks @signo, which was blocked for the wait and became the program's meanwhile (move.c),
 * unless the program has blocked it.
 */
static void let_in_left(int signo)
{
	ksigset one = (ksigset)1 << (signo - 1);

	if (!(local.left_blocked & one))
		sys4(SYS_rt_sigprocmask, SIG_UNBLOCK, &one, NULL, sizeof(one));
}

/* The shortest and the longest time between two knocks. */
#define FIRST_KNOCK 50000 /* ns */
#define LAST_KNOCK 1000000000

static void set_knock(void)
{
	const struct itimerspec when = { .it_value = to_timespec(local.knock_after) };

	sys4(SYS_timer_settime, local.knock_timer, 0, &when, NULL);
}

void wait_forget_knock(void)
{
	if (local.has_knock && !in_sandbox() && !is_relative())
		sys1(SYS_timer_delete, local.knock_timer);
	local.has_knock = false;
}

#define BIT(signo) ((ksigset)1 << ((signo)-1))
#define FAULTS (BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGILL) | BIT(SIGFPE) | BIT(SIGTRAP) | BIT(SIGSYS))

/*
 * Has the agent's signal interrupt the call that follows, by a timer of its own: what the kernel
 * does with a call that is interrupted depends on what it has done by then. The signal may come
 * before the call has begun, so the timer is set again until it has interrupted the call
 * (signals_knocked()), each time for longer. Without a timer the call is made as it is. A handler
 * that left this call by longjmp() has left its timer.
 *
 * Until then the program's signals wait, but for those of faults, which end the program if they are
 * blocked: another handler could run before the call has begun, make calls of its own, and never
 * come back.
 *
 * A cancellation that waits already is acted upon where the call begins, and knock_end() is not reached. The
 * thread ends then: what it runs until that has the program's signals blocked, until the timer interrupts a call
 * of it, as it would have interrupted this one. A signal for the process goes to another thread meanwhile.
 */
static __attribute__((noinline)) void knock_begin(void)
{
	ksigset others = ~(agent_sigset() | FAULTS);

	wait_forget_knock();
	if (timer_make(CLOCK_MONOTONIC, agent_signo(), sys0(SYS_gettid), &local,
		       &local.knock_timer) < 0)
		return;
	local.has_knock = true;
	local.knock_after = FIRST_KNOCK;
	sys4(SYS_rt_sigprocmask, SIG_BLOCK, &others, &local.knock_mask, sizeof(others));
	local.knocking = true;
	set_knock();
	change_agent_signal(SIG_UNBLOCK);
}

static __attribute__((noinline)) void knock_end(void)
{
	if (local.knocking) {
		local.knocking = false;
		restore_signals(local.knock_mask);
	}
	wait_forget_knock();
}

void wait_knock_again(void)
{
	if (!local.knocking || in_sandbox() || local.knock_after >= LAST_KNOCK)
		return;
	local.knock_after *= 2;
	set_knock();
}

/* Returns the result @ended of a call that a handler was to end before it was made. */
#define KNOCKED(ended)                  \
	({                              \
		__typeof__(ended) ret_; \
                                        \
		knock_begin();          \
		ret_ = (ended);         \
		knock_end();            \
		ret_;                   \
	})

/* Ends a wait. Does not change errno. */
static void end(const struct wait *w)
{
	if (!w->on)
		return;
	if (w->blocked)
		admit_agent_signal();
	if (w->blocked && unlikely(w->signo != agent_signo()))
		let_in_left(w->signo);
	if (agent.wall)
		agent_close_wait();
	leave_wait(w);
}

/* Returns the mask for the time of a call: @mask with the agent's signal. @copy has room for it. */
static const sigset_t *with_own(const sigset_t *mask, sigset_t *copy)
{
	if (!mask || !agent.on || (agent.shared && !in_sandbox()) || !take_set(mask, copy))
		return mask;
	sigaddset(copy, agent_signo());
	return copy;
}

/* Prepares to ask @function whether it would wait. Returns whether to ask it. */
static bool begin_asking(struct wait *w, const void *function)
{
	w->saved_errno = errno;
	enter_wait(w, function);
	return w->on;
}

/*
 * Ends the asking. Returns true if *@ret is the result of the call, false if the thread has to
 * wait. A handler of the program that ran meanwhile (enter() in signals.c) ends the call. The
 * agent's handler may have interrupted it too, but that does not count. begin() notices a handler
 * that runs after this.
 */
static bool end_asking(const struct wait *w, int *ret)
{
	bool handled = !local.waits_in, failed = *ret < 0 && errno != EINTR;

	if (*ret <= 0 && !failed && !handled) {
		errno = w->saved_errno;
		return false;
	}
	leave_wait(w);
	if (*ret <= 0 && !failed)
		*ret = interrupted();
	return true;
}

/*
 * Defines a hook. @prepare: statements before the call waits. @block: the call has no mask, so the
 * agent's signal is blocked. @ended: what the hook returns if a handler of the program ran since
 * begin().
 */
#define HOOK(type, name, params, args, prepare, block, ended)       \
	HOOK_API type name params                                   \
	{                                                           \
		type(*function) params = NEXT(name);                \
		struct wait w = { 0 };                              \
		type ret;                                           \
                                                                    \
		prepare begin(&w, (const void *)function, block);   \
		ret = handled(&w) ? KNOCKED(ended) : function args; \
		end(&w);                                            \
		return ret;                                         \
	}

/* A statement for @prepare: a call that will not wait is made unchanged. */
#define UNLESS(may_wait, args) \
	if (!(may_wait))       \
		return function args;

/* Statements for @prepare: the call gets another set of signals. */
#define CHANGE(set, how) \
	sigset_t copy;   \
	set = how(set, &copy);

/* Statements for @prepare: asks the call first whether it would wait, if @may_ask. */
#define ASK(may_ask, args_at_once)                                   \
	if ((may_ask) && begin_asking(&w, (const void *)function)) { \
		ret = function args_at_once;                         \
		if (end_asking(&w, &ret))                            \
			return ret;                                  \
	}

#define ENDED(none, ended, ...) ended

/*
 * The last argument is what the hook returns if it is ended before the call begins; without it, the
 * call is made.
 */
#define HOOK_WAIT(type, name, params, args, may_wait, ...)           \
	HOOK(type, name, params, args, UNLESS(may_wait, args), true, \
	     ENDED(, ##__VA_ARGS__, function args))

#define HOOK_WAIT_IF_IDLE(type, name, params, args, args_at_once, may_wait)                  \
	HOOK(type, name, params, args, UNLESS(may_wait, args) ASK(true, args_at_once), true, \
	     interrupted())

#define HOOK_MASKED_WAIT(type, name, params, args) \
	HOOK(type, name, params, args, CHANGE(mask, with_own), !mask, interrupted())

#define HOOK_MASKED_WAIT_IF_IDLE(type, name, params, args, args_at_once, may_ask)                \
	HOOK(type, name, params, args, CHANGE(mask, with_own) ASK(may_ask, args_at_once), !mask, \
	     interrupted())

/*
 * A hook of a call that waits for a signal. Where a handler ran, the call is made all the same: one
 * of the signals that it waits for may be there. sigwait() is not ended by handlers.
 */
#define HOOK_WAIT_FOR_SIGNAL(type, name, params, args) \
	HOOK(type, name, params, args, CHANGE(set, without_own), true, function args)

EACH_WAIT(HOOK_WAIT)
EACH_MASKED_WAIT(HOOK_MASKED_WAIT)
EACH_WAIT_IF_IDLE(HOOK_WAIT_IF_IDLE)
EACH_MASKED_WAIT_IF_IDLE(HOOK_MASKED_WAIT_IF_IDLE)
EACH_WAIT_FOR_SIGNAL(HOOK_WAIT_FOR_SIGNAL)

/**
 * struct sets - copies of the sets of a select()
 * @copy: the copies. select() clears its sets when it waits, so these are passed when it is asked
 *	whether it would wait.
 * @given: the program's sets; NULL: there is no such set.
 * @bytes: bytes of a set that the kernel looks at.
 */
struct sets {
	fd_set copy[3];
	fd_set *given[3];
	size_t bytes;
};

/*
 * Copies the sets. Returns false if they are too large, or are where they cannot be accessed here.
 */
static bool copy_sets(struct sets *s, int nr, fd_set *in, fd_set *out, fd_set *except)
{
	fd_set *const given[3] = { in, out, except };

	if (nr < 0 || nr > FD_SETSIZE)
		return false;
	s->bytes = ((size_t)nr + 63) / 64 * 8;
	for (int i = 0; i < 3; i++) {
		s->given[i] = given[i];
		if (!given[i])
			continue;
		if (!on_stack(given[i], s->bytes))
			return false;
		memcpy(&s->copy[i], given[i], s->bytes);
	}
	return true;
}

static fd_set *set_copy(struct sets *s, int i)
{
	return s->given[i] ? &s->copy[i] : NULL;
}

static void return_sets(const struct sets *s)
{
	for (int i = 0; i < 3; i++)
		if (s->given[i])
			memcpy(s->given[i], &s->copy[i], s->bytes);
}

/*
 * Asks select() first whether it would wait, if @may_ask; the last arguments are its timeout and
 * mask for that.
 */
#define SELECT_AT_ONCE(w, function, nr, in, out, except, may_ask, ...)                             \
	do {                                                                                       \
		struct sets sets_;                                                                 \
		int ret_;                                                                          \
                                                                                                   \
		if (!(may_ask) || !copy_sets(&sets_, nr, in, out, except) ||                       \
		    !begin_asking(w, (const void *)function))                                      \
			break;                                                                     \
		ret_ = function(nr, set_copy(&sets_, 0), set_copy(&sets_, 1), set_copy(&sets_, 2), \
				__VA_ARGS__);                                                      \
		if (!end_asking(w, &ret_))                                                         \
			break;                                                                     \
		if (ret_ > 0)                                                                      \
			return_sets(&sets_);                                                       \
		return ret_;                                                                       \
	} while (0)

HOOK_API int select(int nr, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
	__typeof__(&select) function = NEXT(select);
	struct timeval none = { 0, 0 };
	struct wait w = { 0 };
	int ret;

	/* This reads the timeout as libc's select() does. */
	if (timeout && !timeout->tv_sec && !timeout->tv_usec)
		return function(nr, in, out, except, timeout);
	SELECT_AT_ONCE(&w, function, nr, in, out, except,
		       !timeout || (timeout->tv_sec >= 0 && timeout->tv_usec >= 0), &none);
	begin(&w, (const void *)function, true);
	ret = handled(&w) ? interrupted() : function(nr, in, out, except, timeout);
	end(&w);
	return ret;
}

HOOK_API int pselect(int nr, fd_set *in, fd_set *out, fd_set *except,
		     const struct timespec *timeout, const sigset_t *mask)
{
	__typeof__(&pselect) function = NEXT(pselect);
	sigset_t copy;
	struct wait w = { 0 };
	int ret;

	mask = with_own(mask, &copy);
	/* If there is a mask, nothing need be blocked, so there is no need to ask. */
	SELECT_AT_ONCE(&w, function, nr, in, out, except, !mask && is_time(timeout), &at_once,
		       mask);
	begin(&w, (const void *)function, !mask);
	ret = handled(&w) ? interrupted() : function(nr, in, out, except, timeout, mask);
	end(&w);
	return ret;
}

HOOK_API int setsockopt(int fd, int level, int option, const void *value, socklen_t size)
{
	if (level == SOL_SOCKET && (option == SO_RCVTIMEO || option == SO_SNDTIMEO))
		socket_timeouts = true;
	return NEXT(setsockopt)(fd, level, option, value, size);
}

/*
 * Makes the system call itself, because the program's libaio may be loaded where only its own users
 * see it. Returns errors as negative values, as libaio does.
 */
static int kernel_getevents(io_context_t context, long min, long max, struct io_event *events,
			    struct timespec *timeout)
{
	return sys6(SYS_io_getevents, (long)context, min, max, (long)events, (long)timeout, 0);
}

HOOK_API int io_getevents(io_context_t context, long min, long max, struct io_event *events,
			  struct timespec *timeout)
{
	static _Atomic bool looked_for;
	__typeof__(&kernel_getevents) function;
	struct wait w = { 0 };
	int ret;

	if (!atomic_exchange_explicit(&looked_for, true, memory_order_relaxed))
		*(void **)&next_wait.io_getevents = next_symbol("io_getevents");
	function = next_wait.io_getevents;
	if (!function)
		function = kernel_getevents;
	begin(&w, (const void *)function, true);
	ret = handled(&w) ? KNOCKED(function(context, min, max, events, timeout)) :
			    function(context, min, max, events, timeout);
	end(&w);
	return ret;
}
