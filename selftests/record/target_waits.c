// SPDX-License-Identifier: GPL-2.0-or-later
/* target_waits.c - what the target waits for, and how: calls that a signal interrupts. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "target.h"

static int expect(const char *what, int ok, double took, double wanted)
{
	if (ok && took >= wanted - 0.002)
		return 0;
	printf("%s: %s after %.4f s of %.4f s\n", what, ok ? "returned" : strerror(errno), took,
	       wanted);
	return 1;
}

#define TIMED(what, wanted, call)                                                 \
	do {                                                                      \
		double at_ = clock_s(CLOCK_MONOTONIC);                            \
		int ok_ = (call);                                                 \
                                                                                  \
		bad |= expect(what, ok_, clock_s(CLOCK_MONOTONIC) - at_, wanted); \
	} while (0)

static void on_alarm(int signo)
{
	(void)signo;
}

static int handlers_bad;

/* Waits in a handler: the wait must last, and the handler must end the call that it interrupted. */
static void on_alarm_wait(int signo)
{
	int saved = errno, bad = 0;

	(void)signo;
	TIMED("poll in a handler", 0.1, !poll(NULL, 0, 100));
	handlers_bad |= bad;
	errno = saved;
}

/* The function that _FORTIFY_SOURCE calls instead of poll(). */
int __poll_chk(struct pollfd *fds, nfds_t nr, int timeout, size_t size);

/* sleeps: checks that calls last as long as asked, although signals interrupt them. */
int do_sleeps(char **arg)
{
	struct timespec ts = { .tv_nsec = 300000000 };
	struct timeval tv = { .tv_usec = 300000 };
	struct sigaction sa = { .sa_handler = on_alarm };
	/* The timer is repeated, because the first alarm may come before the call sleeps. */
	struct itimerval it = { { 0, 200000 }, { 0, 200000 } };
	struct sembuf down = { .sem_op = -1 };
	int sem = semget(IPC_PRIVATE, 1, 0600), queue = msgget(IPC_PRIVATE, 0600);
	long text[2];
	struct epoll_event event;
	int ep = epoll_create1(0);
	sigset_t none, all, usr1;
	int bad = 0;

	(void)arg;
	TIMED("nanosleep", 0.3, !nanosleep(&ts, NULL));
	TIMED("clock_nanosleep", 0.3, !clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL));
	TIMED("usleep", 0.3, !usleep(300000));
	TIMED("sleep", 1, !sleep(1));
	TIMED("poll", 0.3, !poll(NULL, 0, 300));
	TIMED("ppoll", 0.3, !ppoll(NULL, 0, &ts, NULL));
	TIMED("select", 0.3, !select(0, NULL, NULL, NULL, &tv));
	TIMED("pselect", 0.3, !pselect(0, NULL, NULL, NULL, &ts, NULL));
	TIMED("epoll_wait", 0.3, !epoll_wait(ep, &event, 1, 300));
	TIMED("epoll_pwait", 0.3, !epoll_pwait(ep, &event, 1, 300, NULL));
	TIMED("epoll_pwait2", 0.3, !epoll_pwait2(ep, &event, 1, &ts, NULL));
	/* With a mask that lets all signals in, and with one that lets none in. */
	sigemptyset(&none);
	sigfillset(&all);
	TIMED("ppoll, mask", 0.3, !ppoll(NULL, 0, &ts, &none));
	TIMED("pselect, mask", 0.3, !pselect(0, NULL, NULL, NULL, &ts, &none));
	TIMED("epoll_pwait, mask", 0.3, !epoll_pwait(ep, &event, 1, 300, &all));
	TIMED("ppoll, no time", 0,
	      ppoll(NULL, 0, &(struct timespec){ -1, 0 }, NULL) < 0 && errno == EINVAL);
	TIMED("__poll_chk", 0.3, !__poll_chk(NULL, 0, 300, 0));
	TIMED("thrd_sleep", 0.3, !thrd_sleep(&ts, NULL));
	TIMED("semtimedop", 0.3, semtimedop(sem, &down, 1, &ts) && errno == EAGAIN);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	TIMED("sigtimedwait", 0.3, sigtimedwait(&usr1, NULL, &ts) < 0 && errno == EAGAIN);
	/* A pending signal that waits to be taken does not interrupt a call. */
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	raise(SIGUSR1);
	TIMED("poll with a signal pending", 0.3, !poll(NULL, 0, 300));
	TIMED("sigwaitinfo", 0, sigwaitinfo(&usr1, NULL) == SIGUSR1);
	/*
	 * The program's own signals must still interrupt calls. The time counts from the start of
	 * the timer, because the call may begin long after it.
	 */
	sigaction(SIGALRM, &sa, NULL);
	TIMED("own EINTR", 0.2,
	      !setitimer(ITIMER_REAL, &it, NULL) && poll(NULL, 0, 1000000) < 0 && errno == EINTR);
	TIMED("sigsuspend", 0.2,
	      !setitimer(ITIMER_REAL, &it, NULL) && sigsuspend(&none) < 0 && errno == EINTR);
	TIMED("pause", 0.2, !setitimer(ITIMER_REAL, &it, NULL) && pause() < 0 && errno == EINTR);
	TIMED("msgrcv", 0.2,
	      !setitimer(ITIMER_REAL, &it, NULL) && msgrcv(queue, text, 1, 0, 0) < 0 &&
		      errno == EINTR);
	sa.sa_handler = on_alarm_wait;
	sigaction(SIGALRM, &sa, NULL);
	it.it_interval.tv_usec = 900000;
	TIMED("a handler that waits", 0.3,
	      !setitimer(ITIMER_REAL, &it, NULL) && poll(NULL, 0, 1000000) < 0 && errno == EINTR);
	semctl(sem, 0, IPC_RMID);
	msgctl(queue, IPC_RMID, NULL);
	return bad | handlers_bad;
}

#define RETURNS(what, call, wanted, wanted_errno)                    \
	do {                                                         \
		int ret_;                                            \
                                                                     \
		errno = 0;                                           \
		ret_ = (call);                                       \
		if (ret_ == (wanted) && errno == (wanted_errno))     \
			break;                                       \
		printf("%s: %d, %s\n", what, ret_, strerror(errno)); \
		bad = 1;                                             \
	} while (0)

static fd_set set_of(int first, int second)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(first, &set);
	if (second >= 0)
		FD_SET(second, &set);
	return set;
}

static int is_set_of(const fd_set *set, int first)
{
	fd_set wanted = set_of(first, -1);

	return !memcmp(set, &wanted, sizeof(wanted));
}

/* Tests select(): @full can be read and @idle cannot; both are small numbers. */
static int select_sets(int full, int idle)
{
	static fd_set elsewhere;
	struct timeval second = { .tv_sec = 1 }, ms = { .tv_usec = 20000 }, none = { 0, 0 };
	fd_set in = set_of(full, idle), out = set_of(idle, -1), except = set_of(full, -1);
	int nr = (full > idle ? full : idle) + 1, bad = 0, closed;

	RETURNS("select, ready", select(nr, &in, NULL, &except, &second), 1, 0);
	bad |= !is_set_of(&in, full) || FD_ISSET(full, &except);
	elsewhere = set_of(full, idle);
	RETURNS("select, set elsewhere", select(nr, &elsewhere, NULL, NULL, NULL), 1, 0);
	bad |= !is_set_of(&elsewhere, full);
	in = set_of(idle, -1);
	TIMED("select, idle", 0.02, !select(nr, &in, NULL, NULL, &ms));
	bad |= FD_ISSET(idle, &in) || ms.tv_usec || ms.tv_sec;
	in = set_of(full, idle);
	RETURNS("select, at once", select(nr, &in, &out, NULL, &none), 1, 0);
	bad |= !is_set_of(&in, full) || FD_ISSET(idle, &out);
	closed = dup(full);
	close(closed);
	in = set_of(full, closed);
	RETURNS("select, closed", select(closed + 1, &in, NULL, NULL, NULL), -1, EBADF);
	bad |= !FD_ISSET(closed, &in) || !FD_ISSET(full, &in);
	RETURNS("select, bad set", select(nr, (fd_set *)8, NULL, NULL, &second), -1, EFAULT);
	RETURNS("select, bad number", select(-1, &in, NULL, NULL, &second), -1, EINVAL);
	second.tv_sec = -1;
	RETURNS("select, bad time", select(nr, &in, NULL, NULL, &second), -1, EINVAL);
	return bad;
}

static int pselect_sets(int full, int idle)
{
	struct timespec second = { .tv_sec = 1 }, ms = { .tv_nsec = 20000000 };
	fd_set in = set_of(full, idle);
	int nr = (full > idle ? full : idle) + 1, bad = 0;
	sigset_t all;

	sigfillset(&all);
	RETURNS("pselect, ready", pselect(nr, &in, NULL, NULL, &second, NULL), 1, 0);
	bad |= !is_set_of(&in, full);
	in = set_of(full, idle);
	RETURNS("pselect, mask", pselect(nr, &in, NULL, NULL, NULL, &all), 1, 0);
	bad |= !is_set_of(&in, full);
	in = set_of(idle, -1);
	TIMED("pselect, idle", 0.02, !pselect(nr, &in, NULL, NULL, &ms, NULL));
	bad |= FD_ISSET(idle, &in);
	second.tv_nsec = 1000000000;
	RETURNS("pselect, bad time", pselect(nr, &in, NULL, NULL, &second, NULL), -1, EINVAL);
	return bad;
}

static int epoll_times(int full)
{
	struct timespec second = { .tv_sec = 1 }, ms = { .tv_nsec = 20000000 };
	struct epoll_event event = { .events = EPOLLIN };
	int ep = epoll_create1(0), bad = 0;

	TIMED("epoll_pwait2, idle", 0.02, !epoll_pwait2(ep, &event, 1, &ms, NULL));
	epoll_ctl(ep, EPOLL_CTL_ADD, full, &event);
	RETURNS("epoll_pwait2, ready", epoll_pwait2(ep, &event, 1, &second, NULL), 1, 0);
	RETURNS("epoll_pwait2, for ever", epoll_pwait2(ep, &event, 1, NULL, NULL), 1, 0);
	RETURNS("epoll_pwait2, bad pointer",
		epoll_pwait2(ep, &event, 1, (struct timespec *)8, NULL), -1, EFAULT);
	second.tv_sec = -1;
	RETURNS("epoll_pwait2, bad time", epoll_pwait2(ep, &event, 1, &second, NULL), -1, EINVAL);
	return bad;
}

/* selects: checks that calls that the agent first asks whether they would wait return the same. */
int do_selects(char **arg)
{
	int full[2], idle[2];

	(void)arg;
	if (pipe(full) || pipe(idle) || write(full[1], "x", 1) != 1)
		return 1;
	return select_sets(full[0], idle[0]) | pselect_sets(full[0], idle[0]) |
	       epoll_times(full[0]);
}

static int block_pipe[2];

static NOINLINE void *blocked_in_read(void *arg)
{
	char c;

	(void)arg;
	return read(block_pipe[0], &c, 1) < 0 ? block_pipe : NULL;
}

static sem_t never, is_busy;

static NOINLINE void *busy_forever(void *arg)
{
	(void)arg;
	sem_post(&is_busy);
	for (;;)
		burn(1);
	return NULL;
}

static NOINLINE void *waiting_for_semaphore(void *arg)
{
	(void)arg;
	sem_wait(&never);
	return NULL;
}

/*
 * stacks: makes threads with known stacks, for trace. It is ready when the one that does not wait has begun:
 * right after clone3()'s system call there are no unwind rules for a new thread.
 */
int do_stacks(char **arg)
{
	static void *(*const what[])(void *) = {
		blocked_in_read,
		waiting_for_semaphore,
		busy_forever,
	};
	pthread_t thread;

	(void)arg;
	if (pipe(block_pipe) || sem_init(&never, 0, 0) || sem_init(&is_busy, 0, 0))
		return 1;
	for (int i = 0; i < 3; i++)
		if (pthread_create(&thread, NULL, what[i], NULL))
			return 1;
	sem_wait(&is_busy);
	puts("ready");
	fflush(stdout);
	pthread_join(thread, NULL);
	return 0;
}

static _Atomic int waits_over;

static void *says_if_it_ends(const char *what, int ret)
{
	if (!waits_over)
		printf("%s: %s\n", what, ret < 0 ? strerror(errno) : "returned");
	return NULL;
}

static void *in_epoll_wait(void *arg)
{
	struct epoll_event event;

	(void)arg;
	return says_if_it_ends("epoll_wait", epoll_wait(epoll_create1(0), &event, 1, -1));
}

static void *in_semop(void *arg)
{
	struct sembuf down = { .sem_op = -1 };

	return says_if_it_ends("semop", semop(*(int *)arg, &down, 1));
}

static void *in_sigwaitinfo(void *arg)
{
	sigset_t usr1;

	(void)arg;
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	return says_if_it_ends("sigwaitinfo", sigwaitinfo(&usr1, NULL));
}

/* waits: threads wait in calls that a stop may end, until a line is read; tells if one ended. */
int do_waits(char **arg)
{
	static void *(*const what[])(void *) = {
		in_epoll_wait,
		in_semop,
		in_sigwaitinfo,
	};
	int sem = semget(IPC_PRIVATE, 1, 0600);
	pthread_t thread[3];

	(void)arg;
	for (int i = 0; i < 3; i++)
		if (pthread_create(&thread[i], NULL, what[i], &sem))
			return 1;
	puts("ready");
	fflush(stdout);
	getchar();
	waits_over = 1;
	semctl(sem, 0, IPC_RMID);
	return 0;
}
