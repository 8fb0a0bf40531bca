// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * storm.c - every call that signal(7) lists waits, and a handler ends the wait, ROUNDS times for
 * each kind of handler.
 *
 *  storm ROUNDS [CALL]
 *
 * The signal is sent when the kernel says that the thread sleeps in this very call: a call that
 * goes on waiting has lost the signal. The results are printed; a program that is recorded must
 * print the same as by itself. A call that does not end for a long time is a hang, and a call that
 * nothing ended was cut short: both are printed, and the status is 1.
 */
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define LIMIT 100 /* seconds after which a call counts as hung */

static const struct timespec long_time = { .tv_sec = 100000 };
static struct timespec far; /* a time far in the future, by CLOCK_REALTIME and CLOCK_MONOTONIC */
static int fds[2]; /* what the call waits at, and what ends it */
static int sysv;
static pid_t child;
static sem_t sem;
static mqd_t queue;
static unsigned int word;
static char folder[] = "/tmp/shstk-storm-XXXXXX";
static char path[64];
static struct aiocb *request;
static sigset_t no_signals, rtmin;
static _Atomic int freed; /* set by what ends the call, when it is done */
static char buf[4096];
static struct iovec iov = { buf, 1 };
static struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

static void die(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(2);
}

#define MUST(call) ((call) < 0 ? die(#call) : (void)0)

static void fill(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	while (write(fd, buf, sizeof(buf)) > 0 || write(fd, buf, 1) > 0)
		;
	fcntl(fd, F_SETFL, flags);
}

/* X/Open's sigpause(), which headers call deprecated. */
int __xpg_sigpause(int signo);

/*
 * The functions below make what a call needs. They return a negative value if this is not possible.
 */
/* The short ones have one line each. */
/* clang-format off */
static int nothing(void) { return 0; }
static int a_pipe(void) { return pipe(fds); }
static int a_full_pipe(void)
{
	int p[2];

	if (pipe(p))
		return -1;
	fcntl(p[1], F_SETPIPE_SZ, 4096);
	fill(p[1]);
	fds[0] = p[1];
	fds[1] = p[0];
	return 0;
}
static int an_event(void) { return fds[0] = fds[1] = eventfd(0, 0); }
static int a_timer(void) { return fds[0] = timerfd_create(CLOCK_MONOTONIC, 0); }
static int sockets(int type, int option)
{
	struct timeval tv = { .tv_sec = 100000 };

	if (socketpair(AF_UNIX, type, 0, fds))
		return -1;
	return option ? setsockopt(fds[0], SOL_SOCKET, option, &tv, sizeof(tv)) : 0;
}
static int a_socket(void) { return sockets(SOCK_DGRAM, 0); }
static int a_timed_socket(void) { return sockets(SOCK_DGRAM, SO_RCVTIMEO); }
static int a_full_socket(void)
{
	int ret = sockets(SOCK_STREAM, 0);

	if (!ret)
		fill(fds[0]);
	return ret;
}
static int a_full_timed_socket(void)
{
	int ret = sockets(SOCK_STREAM, SO_SNDTIMEO);

	if (!ret)
		fill(fds[0]);
	return ret;
}

static struct sockaddr_un address = { .sun_family = AF_UNIX };

static int a_listener(int timed)
{
	struct timeval tv = { .tv_sec = 100000 };

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", folder);
	unlink(address.sun_path);
	fds[0] = socket(AF_UNIX, SOCK_STREAM, 0);
	if (fds[0] < 0 || bind(fds[0], (void *)&address, sizeof(address)) || listen(fds[0], 0))
		return -1;
	return timed ? setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) : 0;
}
static int listening(void) { return a_listener(0); }
static int listening_timed(void) { return a_listener(1); }
/*
 * Makes a listener with a full queue: one connection fills it, the next one waits, with a timeout.
 */
static int busy_listener(void)
{
	struct timeval tv = { .tv_sec = 100000 };
	int ret = a_listener(0);

	fds[1] = socket(AF_UNIX, SOCK_STREAM, 0);
	if (ret || connect(fds[1], (void *)&address, sizeof(address)))
		return -1;
	fds[1] = socket(AF_UNIX, SOCK_STREAM, 0);
	return setsockopt(fds[1], SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
}
static int an_epoll(void) { return fds[0] = epoll_create1(0); }
static int a_semaphore(void) { return sysv = semget(IPC_PRIVATE, 1, 0600); }
static int a_queue(void) { return sysv = msgget(IPC_PRIVATE, 0600); }
static int a_full_queue(void)
{
	static struct { long type; char text[4000]; } m = { .type = 1 };

	sysv = msgget(IPC_PRIVATE, 0600);
	while (sysv >= 0 && !msgsnd(sysv, &m, sizeof(m.text), IPC_NOWAIT))
		;
	return sysv;
}
static int posix_semaphore(void) { return sem_init(&sem, 0, 0); }
static int a_request(void)
{
	if (pipe(fds))
		return -1;
	/* A request that is not done belongs to libc for ever. */
	request = calloc(1, sizeof(*request));
	request->aio_fildes = fds[0];
	request->aio_buf = buf;
	request->aio_nbytes = 1;
	return aio_read(request);
}
static int make_queue(int full)
{
	struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = 8 };
	char name[32];

	snprintf(name, sizeof(name), "/shstk-storm-%d", getpid());
	queue = mq_open(name, O_CREAT | O_RDWR, 0600, &attr);
	mq_unlink(name);
	return queue < 0 ? -1 : full ? mq_send(queue, buf, 1, 0) : 0;
}
static int posix_queue(void) { return make_queue(0); }
static int full_posix_queue(void) { return make_queue(1); }
static int a_child(void)
{
	child = fork();
	if (!child) {
		for (;;)
			sleep(1000);
	}
	return child;
}
static int a_fifo(void)
{
	snprintf(path, sizeof(path), "%s/fifo", folder);
	unlink(path);
	return mkfifo(path, 0600);
}
/* Opens one file twice; the second descriptor has the lock. */
static int two_files(void)
{
	snprintf(path, sizeof(path), "%s/file", folder);
	fds[0] = open(path, O_RDWR | O_CREAT, 0600);
	return fds[1] = open(path, O_RDWR);
}

static struct flock whole(int type) { return (struct flock){ .l_type = type }; }
static int flocked(void) { return two_files() < 0 ? -1 : flock(fds[1], LOCK_EX); }
static int locked(void)
{
	struct flock l = whole(F_WRLCK);

	return two_files() < 0 ? -1 : fcntl(fds[1], F_OFD_SETLK, &l);
}

/* The functions below end a call from another thread, so that a call that was restarted returns. */
static void write_one(void) { MUST(write(fds[1], "12345678", 8)); }
static void read_all(void)
{
	fcntl(fds[1], F_SETFL, fcntl(fds[1], F_GETFL) | O_NONBLOCK);
	while (read(fds[1], buf, sizeof(buf)) > 0)
		;
	freed = 1;
}
static void set_timer(void)
{
	struct itimerspec soon = { .it_value = { .tv_nsec = 1 } };

	timerfd_settime(fds[0], 0, &soon, NULL);
}
static void post(void) { sem_post(&sem); }
static void send_queue(void) { MUST(mq_send(queue, buf, 1, 0)); }
static void take_queue(void) { MUST(mq_receive(queue, buf, 8, NULL)); }
static void kill_child(void) { kill(child, SIGKILL); }
static void knock(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	MUST(connect(fd, (void *)&address, sizeof(address)));
	close(fd);
}
static void open_fifo(void)
{
	fds[1] = open(path, O_WRONLY);
	MUST(fds[1]);
	freed = 1;
}
static void unflock(void) { flock(fds[1], LOCK_UN); }
static void unlock(void)
{
	struct flock l = whole(F_UNLCK);

	fcntl(fds[1], F_OFD_SETLK, &l);
}
static void wake(void)
{
	word = 1;
	syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1);
	freed = 1;
}

/* clang-format on */

/*
 * The functions below make the call, and, if it returned without an error, restore what was before.
 */
#define CALL(name, expr)            \
	static long do_##name(void) \
	{                           \
		return expr;        \
	}

static long call_select(int masked)
{
	struct timeval tv = { .tv_sec = 100000 };

	return masked ? pselect(0, NULL, NULL, NULL, &long_time, &no_signals) :
			select(0, NULL, NULL, NULL, &tv);
}
static struct epoll_event event;
static struct sembuf down = { .sem_op = -1 };
static long call_msg(int receive)
{
	static struct {
		long type;
		char text[4000];
	} m = { .type = 1 };

	return receive ? msgrcv(sysv, &m, sizeof(m.text), 0, 0) :
			 msgsnd(sysv, &m, sizeof(m.text), 0);
}
static struct mmsghdr messages = { .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } };
static long full_again(long ret)
{
	if (ret <= 0)
		return ret;
	while (!freed)
		sched_yield();
	freed = 0;
	fill(fds[0]);
	return ret;
}
static long closed(long fd)
{
	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}
/* Opens a FIFO. Waits for the other thread, which must stay until then. */
static long call_open(void)
{
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		return fd;
	while (!freed)
		sched_yield();
	freed = 0;
	close(fds[1]);
	return closed(fd);
}
static long reaped(long ret)
{
	if (ret >= 0)
		a_child();
	return ret < 0 ? ret : 0;
}
static long call_flock(void)
{
	long ret = flock(fds[0], LOCK_EX);

	if (!ret) {
		flock(fds[0], LOCK_UN);
		flock(fds[1], LOCK_EX);
	}
	return ret;
}
static long call_lock(void)
{
	struct flock l = whole(F_WRLCK);
	long ret = fcntl(fds[0], F_OFD_SETLKW, &l);

	if (!ret) {
		l = whole(F_UNLCK);
		fcntl(fds[0], F_OFD_SETLK, &l);
		l = whole(F_WRLCK);
		fcntl(fds[1], F_OFD_SETLK, &l);
	}
	return ret;
}
static long call_futex(void)
{
	long ret = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL);

	if (ret && errno == EAGAIN)
		ret = 0; /* woken before it slept again */
	while (!ret && !freed)
		sched_yield();
	freed = word = 0;
	return ret;
}

CALL(nanosleep, nanosleep(&long_time, NULL))
CALL(clock_nanosleep, clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &far, NULL))
CALL(usleep, usleep(900000000))
CALL(sleep, sleep(100000) > 0)
CALL(thrd_sleep, thrd_sleep(&long_time, NULL))
CALL(pause, pause())
CALL(sigpause, __xpg_sigpause(SIGTRAP))
CALL(sigsuspend, sigsuspend(&no_signals))
CALL(sigtimedwait, sigtimedwait(&rtmin, NULL, &long_time))
CALL(sigwaitinfo, sigwaitinfo(&rtmin, NULL))
CALL(poll, poll(NULL, 0, -1))
CALL(poll_timed, poll(NULL, 0, 1000000000))
CALL(ppoll, ppoll(NULL, 0, &long_time, NULL))
CALL(ppoll_mask, ppoll(NULL, 0, &long_time, &no_signals))
CALL(select, call_select(0))
CALL(pselect, call_select(1))
CALL(epoll_wait, epoll_wait(fds[0], &event, 1, -1))
CALL(epoll_pwait, epoll_pwait(fds[0], &event, 1, -1, &no_signals))
CALL(epoll_pwait2, epoll_pwait2(fds[0], &event, 1, &long_time, &no_signals))
CALL(semop, semop(sysv, &down, 1))
CALL(semtimedop, semtimedop(sysv, &down, 1, &long_time))
CALL(msgrcv, call_msg(1))
CALL(msgsnd, call_msg(0))
CALL(sem_timedwait, sem_timedwait(&sem, &far))
CALL(sem_clockwait, sem_clockwait(&sem, CLOCK_MONOTONIC, &far))
CALL(aio_suspend, aio_suspend((const struct aiocb *[]){ request }, 1, &long_time))
CALL(recv, recv(fds[0], buf, 8, 0))
CALL(recvfrom, recvfrom(fds[0], buf, 8, 0, NULL, NULL))
CALL(recvmsg, recvmsg(fds[0], &message, 0))
CALL(recvmmsg, recvmmsg(fds[0], &messages, 1, 0, NULL))
CALL(accept, closed(accept(fds[0], NULL, NULL)))
CALL(accept4, closed(accept4(fds[0], NULL, NULL, SOCK_CLOEXEC)))
CALL(connect, connect(fds[1], (void *)&address, sizeof(address)))
CALL(send, full_again(send(fds[0], buf, 1, 0)))
CALL(sendmsg, full_again(sendmsg(fds[0], &message, 0)))
CALL(read, read(fds[0], buf, 8))
CALL(readv, readv(fds[0], &iov, 1))
CALL(write, full_again(write(fds[0], buf, 1)))
CALL(writev, full_again(writev(fds[0], &iov, 1)))
CALL(waitpid, reaped(waitpid(child, NULL, 0)))
CALL(waitid, reaped(waitid(P_PID, child, NULL, WEXITED)))
CALL(open, call_open())
CALL(flock, call_flock())
CALL(fcntl, call_lock())
CALL(mq_receive, mq_receive(queue, buf, 8, NULL))
CALL(mq_send, mq_send(queue, buf, 1, 0))
CALL(sem_wait, sem_wait(&sem))
CALL(futex, call_futex())

#define ROW(name, nr, needs, ends)                      \
	{                                               \
#name, SYS_##nr, needs, do_##name, ends \
	}
#define TIMED(name, nr, needs)                                            \
	{                                                                 \
#name " with a timeout", SYS_##nr, needs, do_##name, NULL \
	}

/* The calls that signal(7) lists. Calls that no handler restarts have nothing that ends them. */
static const struct call {
	const char *name;
	long nr;
	int (*needs)(void);
	long (*call)(void);
	void (*ends)(void);
} calls[] = {
	ROW(nanosleep, clock_nanosleep, nothing, NULL),
	ROW(clock_nanosleep, clock_nanosleep, nothing, NULL),
	ROW(usleep, clock_nanosleep, nothing, NULL),
	ROW(sleep, clock_nanosleep, nothing, NULL),
	ROW(thrd_sleep, clock_nanosleep, nothing, NULL),
#ifdef SYS_pause
	ROW(pause, pause, nothing, NULL),
	ROW(poll, poll, nothing, NULL),
	ROW(poll_timed, poll, nothing, NULL),
	ROW(epoll_wait, epoll_wait, an_epoll, NULL),
#else
	ROW(pause, ppoll, nothing, NULL),
	ROW(poll, ppoll, nothing, NULL),
	ROW(poll_timed, ppoll, nothing, NULL),
	ROW(epoll_wait, epoll_pwait, an_epoll, NULL),
#endif
	ROW(sigpause, rt_sigsuspend, nothing, NULL),
	ROW(sigsuspend, rt_sigsuspend, nothing, NULL),
	ROW(sigtimedwait, rt_sigtimedwait, nothing, NULL),
	ROW(sigwaitinfo, rt_sigtimedwait, nothing, NULL),
	ROW(ppoll, ppoll, nothing, NULL),
	ROW(ppoll_mask, ppoll, nothing, NULL),
	ROW(select, pselect6, nothing, NULL),
	ROW(pselect, pselect6, nothing, NULL),
	ROW(epoll_pwait, epoll_pwait, an_epoll, NULL),
	ROW(epoll_pwait2, epoll_pwait2, an_epoll, NULL),
	ROW(semop, semtimedop, a_semaphore, NULL),
	ROW(semtimedop, semtimedop, a_semaphore, NULL),
	ROW(msgrcv, msgrcv, a_queue, NULL),
	ROW(msgsnd, msgsnd, a_full_queue, NULL),
	ROW(sem_timedwait, futex, posix_semaphore, NULL),
	ROW(sem_clockwait, futex, posix_semaphore, NULL),
	ROW(aio_suspend, futex, a_request, NULL),
	TIMED(recv, recvfrom, a_timed_socket),
	TIMED(recvfrom, recvfrom, a_timed_socket),
	TIMED(recvmsg, recvmsg, a_timed_socket),
	TIMED(recvmmsg, recvmmsg, a_timed_socket),
	TIMED(read, read, a_timed_socket),
	TIMED(readv, readv, a_timed_socket),
	TIMED(accept, accept, listening_timed),
	TIMED(accept4, accept4, listening_timed),
	TIMED(connect, connect, busy_listener),
	TIMED(send, sendto, a_full_timed_socket),
	TIMED(sendmsg, sendmsg, a_full_timed_socket),
	TIMED(write, write, a_full_timed_socket),
	TIMED(writev, writev, a_full_timed_socket),
	/* From here on, SA_RESTART restarts the calls. */
	ROW(read, read, a_pipe, write_one),
	{ "read of an eventfd", SYS_read, an_event, do_read, write_one },
	{ "read of a timerfd", SYS_read, a_timer, do_read, set_timer },
	ROW(readv, readv, a_socket, write_one),
	ROW(write, write, a_full_pipe, read_all),
	ROW(writev, writev, a_full_pipe, read_all),
	ROW(recv, recvfrom, a_socket, write_one),
	ROW(recvfrom, recvfrom, a_socket, write_one),
	ROW(recvmsg, recvmsg, a_socket, write_one),
	ROW(accept, accept, listening, knock),
	ROW(accept4, accept4, listening, knock),
	ROW(send, sendto, a_full_socket, read_all),
	ROW(sendmsg, sendmsg, a_full_socket, read_all),
	ROW(waitpid, wait4, a_child, kill_child),
	ROW(waitid, waitid, a_child, kill_child),
	ROW(open, openat, a_fifo, open_fifo),
	ROW(flock, flock, flocked, unflock),
	ROW(fcntl, fcntl, locked, unlock),
	ROW(mq_receive, mq_timedreceive, posix_queue, send_queue),
	ROW(mq_send, mq_timedsend, full_posix_queue, take_queue),
	ROW(sem_wait, futex, posix_semaphore, post),
	ROW(futex, futex, nothing, wake),
};

enum kind { RESTART, PLAIN, FULL, NESTED, JUMP, NR_KINDS };

static const char *const kinds[] = {
	"SA_RESTART", "without", "full mask", "nested", "siglongjmp",
};

static const struct call *the_call;
static enum kind the_kind;
static long rounds;
static _Atomic long begun, ended, handled;
static _Atomic int waiter;
static sigjmp_buf out;

/* Spends some time in handlers, so that samples are taken there, too. */
static void work(void)
{
	for (volatile int i = 0; i < 2000; i++)
		;
}

static void on_usr2(int signo)
{
	(void)signo;
	work();
}

static void on_usr1(int signo)
{
	int saved = errno;

	(void)signo;
	work();
	if (the_kind == NESTED)
		raise(SIGUSR2);
	handled++;
	if (the_kind == JUMP)
		siglongjmp(out, 1);
	errno = saved;
}

static void set_handlers(void)
{
	struct sigaction act = { .sa_handler = on_usr1 };

	if (the_kind == RESTART || the_kind == NESTED)
		act.sa_flags = SA_RESTART;
	if (the_kind == FULL)
		sigfillset(&act.sa_mask);
	sigaction(SIGUSR1, &act, NULL);
	act = (struct sigaction){ .sa_handler = on_usr2 };
	sigaction(SIGUSR2, &act, NULL);
}

struct results {
	char text[8][64];
	long number[8];
};

static void note(struct results *r, const char *text)
{
	for (int i = 0; i < 8; i++) {
		if (!r->number[i])
			strncpy(r->text[i], text, sizeof(r->text[i]) - 1);
		if (!strcmp(r->text[i], text)) {
			r->number[i]++;
			return;
		}
	}
}

static void *wait_often(void *arg)
{
	struct results *r = arg;

	waiter = syscall(SYS_gettid);
	for (volatile long i = 1; i <= rounds; i++) {
		char text[64] = "jumped";

		if (!sigsetjmp(out, 1)) {
			long ret;

			begun = i;
			errno = 0;
			ret = the_call->call();
			snprintf(text, sizeof(text), "%ld %s", ret,
				 ret < 0 ? strerrorname_np(errno) : "");
		}
		note(r, text);
		ended = i;
	}
	return NULL;
}

/* Returns the system call in which the thread sleeps, or -1. */
static long sleeps_in(int fd)
{
	char line[32];
	ssize_t n = pread(fd, line, sizeof(line) - 1, 0);

	if (n <= 0)
		die("/proc/self/task/TID/syscall");
	line[n] = '\0';
	return *line >= '0' && *line <= '9' ? atol(line) : -1;
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

#define UNTIL(condition)                                \
	do {                                            \
		double start_ = seconds();              \
                                                        \
		while (!(condition)) {                  \
			sched_yield();                  \
			if (seconds() - start_ > LIMIT) \
				return -1;              \
		}                                       \
	} while (0)

/*
 * Sends a signal to one wait after the other; the first one comes late, so that samples may come
 * before. Returns -1 if a wait does not end, and 1 if one ends before its signal.
 */
static int send_often(void)
{
	struct timespec a_while = { .tv_nsec = 20000000 };
	char name[64];
	int fd;

	UNTIL(waiter);
	snprintf(name, sizeof(name), "/proc/self/task/%d/syscall", waiter);
	fd = open(name, O_RDONLY);
	for (long i = 1; i <= rounds; i++) {
		long before = handled;

		UNTIL(ended >= i || (begun == i && sleeps_in(fd) == the_call->nr));
		if (i == 1 && the_kind == PLAIN)
			syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &a_while, NULL);
		if (ended >= i)
			return 1;
		syscall(SYS_tgkill, getpid(), waiter, SIGUSR1);
		UNTIL(handled > before);
		if (the_call->ends && (the_kind == RESTART || the_kind == NESTED))
			the_call->ends();
		UNTIL(ended >= i);
	}
	close(fd);
	return 0;
}

/* Cleans up what @needs made. */
static void clean(void)
{
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		child = 0;
	}
	for (int fd = 3; fd < 40; fd++)
		close(fd);
}

static int storm(const struct call *call, enum kind kind)
{
	struct results r = { 0 };
	pthread_t thread;
	int ret;

	the_call = call;
	the_kind = kind;
	begun = ended = handled = waiter = word = freed = 0;
	if (call->needs() < 0)
		die(call->name);
	set_handlers();
	if ((errno = pthread_create(&thread, NULL, wait_often, &r)))
		die("pthread_create");
	ret = send_often();
	if (ret) {
		printf("%s, %s: %s in round %ld\n", call->name, kinds[kind],
		       ret > 0 ? "ends by itself" : "hangs", begun);
		return ret;
	}
	pthread_join(thread, NULL);
	clean();
	if (call->nr == SYS_semtimedop)
		semctl(sysv, 0, IPC_RMID);
	if (call->nr == SYS_msgrcv || call->nr == SYS_msgsnd)
		msgctl(sysv, IPC_RMID, NULL);
	printf("%s, %s:", call->name, kinds[kind]);
	for (int i = 0; i < 8 && r.number[i]; i++)
		printf(" %ld times %s", r.number[i], r.text[i]);
	putchar('\n');
	return 0;
}

/*
 * Returns 1 if this can be tested. A jump out of aio_suspend() leaves libc's list of waiters
 * broken.
 */
static int can_do(const struct call *call, enum kind kind)
{
	return kind != JUMP || call->needs != a_request;
}

int main(int argc, char **argv)
{
	int ret = 0;

	rounds = argc > 1 ? atol(argv[1]) : 100;
	clock_gettime(CLOCK_REALTIME, &far);
	far.tv_sec += 100000;
	sigaddset(&rtmin, SIGRTMIN);
	if (!mkdtemp(folder))
		die(folder);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; !ret && i < sizeof(calls) / sizeof(calls[0]); i++)
		for (int kind = 0; !ret && kind < NR_KINDS; kind++)
			if ((argc < 3 || !strcmp(argv[2], calls[i].name)) &&
			    can_do(&calls[i], kind))
				ret = storm(&calls[i], kind);
	unlink(path);
	unlink(address.sun_path);
	for (const char *const *name = (const char *const[]){ "file", "fifo", "socket", NULL };
	     *name; name++) {
		snprintf(path, sizeof(path), "%s/%s", folder, *name);
		unlink(path);
	}
	rmdir(folder);
	return !!ret;
}
