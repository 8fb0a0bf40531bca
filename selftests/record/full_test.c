// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * full_test.c - tests each hook of the agent in each state in which nobody takes what the agent
 * tells: every ring is full, the recorder has stopped, or no memory can be mapped.
 *
 * The agent is linked into this program, all of it with sanitizers. This program makes for itself
 * what the agent would get from a recorder, and executes itself again. A hook that writes where it
 * must not ends the child that called it. The hooks must be the same as those of the agent that is
 * preloaded, AGENT. Prints KTAP.
 */
#undef _FORTIFY_SOURCE /* the functions themselves are called, not their checking variants */
#include <aio.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#include "selftests/hooks.h"
#include "tools/inject/agent/agent.h"

#define SLOTS 64
#define COOKIE 0x1234567890abcdefull
#define PERIOD 1000000 /* ns */
#define MAPPINGS 120 /* too many for their lines to fit into one record */

/*
 * Functions of libaio, functions that programs built with _FORTIFY_SOURCE call, and functions that
 * no header declares.
 */
struct io_event;
int io_getevents(void *context, long min, long max, struct io_event *events,
		 struct timespec *timeout);
int __poll_chk(struct pollfd *fds, nfds_t nr, int timeout, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t nr, const struct timespec *timeout, const sigset_t *mask,
		size_t size);
ssize_t __read_chk(int fd, void *buf, size_t size, size_t room);
ssize_t __recv_chk(int fd, void *buf, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t size, size_t room, int flags,
		       struct sockaddr *from, socklen_t *from_size);
int __xpg_sigpause(int signo);
sighandler_t __sysv_signal(int signo, sighandler_t handler);
sighandler_t bsd_signal(int signo, sighandler_t handler);
void __register_frame(void *eh_frame);
void __deregister_frame(void *eh_frame);

#ifdef __SANITIZE_ADDRESS__
#define SANITIZED ", with sanitizers"
const char *__asan_default_options(void);

/* The hooks come before the sanitizer's own; its alternate stack is not needed. */
const char *__asan_default_options(void)
{
	return "detect_leaks=0:use_sigaltstack=0:verify_asan_link_order=0";
}
#else
#define SANITIZED ""
#endif

/* The state NO_MEMORY is not tested with the sanitizer, which needs memory itself. */
#ifdef __SANITIZE_ADDRESS__
enum state { FULL, STOPPED, STATES, NO_MEMORY };
#else
enum state { FULL, STOPPED, NO_MEMORY, STATES };
#endif

static const char *const state_names[] = {
	[FULL] = "every ring is full",
	[STOPPED] = "the recorder has stopped",
	[NO_MEMORY] = "no memory can be mapped",
};

static enum state state;

/* Fills the ring of this thread: it looks as if nobody has read what is in it. */
static void fill_ring(void)
{
	struct agent_thread *t = agent_self();

	if (t && state == FULL)
		atomic_store(&t->slot->tail, t->head - agent.ring_size);
}

/* Uses CPU time until the timer's signal has come. */
static void spin(void)
{
	uint64_t begin = now(CLOCK_THREAD_CPUTIME_ID);

	while (now(CLOCK_THREAD_CPUTIME_ID) - begin < 4 * PERIOD)
		;
}

static void on_alarm(int signo)
{
	(void)signo;
	fill_ring();
}

/* The objects that arguments of hooks point to. They are empty, or as long as their types say. */
static const struct timespec soon = { 0, 2000000 };
static struct timespec until, rest;
static struct timeval soon_too;
static sigset_t none, alarm_only;
static siginfo_t info;
static struct iovec piece;
static struct msghdr message;
static struct mmsghdr messages;
static struct sockaddr_storage address;
static socklen_t address_size;
static struct rlimit limit;
static struct rlimit64 limit64;
static fd_set fds;
static struct pollfd pollfd;
static struct epoll_event event;
static struct {
	long type;
	char text[64];
} letter = { 1, "" };
static struct sembuf op;
static sem_t sem;
static char bytes[64], little[4096];
static const stack_t small_stack = { .ss_sp = little, .ss_size = sizeof(little) };
static int pair[2], ends[2], epoll, queue, sems, status;
static struct rusage usage;
static char *const words[] = { "true", NULL };
static char *const variables[] = { "A=b", NULL };

static void prepare(void)
{
	struct itimerval often = { { 0, 3000 }, { 0, 3000 } };
	struct sigaction action = { .sa_handler = on_alarm };

	soon_too = (struct timeval){ 0, 2000 };
	clock_gettime(CLOCK_REALTIME, &until);
	sigaddset(&alarm_only, SIGALRM);
	address_size = sizeof(address);
	piece = (struct iovec){ bytes, 1 };
	message = (struct msghdr){ .msg_iov = &piece, .msg_iovlen = 1 };
	messages.msg_hdr = message;
	getrlimit(RLIMIT_CORE, &limit);
	getrlimit64(RLIMIT_CORE, &limit64);
	queue = msgget(IPC_PRIVATE, 0600);
	sems = semget(IPC_PRIVATE, 1, 0600);
	sem_init(&sem, 0, 0);
	epoll = epoll_create1(0);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || pipe(ends))
		_exit(100);
	pollfd = (struct pollfd){ .fd = pair[0], .events = POLLIN };
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
}

static void tidy(void)
{
	msgctl(queue, IPC_RMID, NULL);
	semctl(sems, 0, IPC_RMID);
}

/* Sends something to read, through the socket and through the pipe. */
static void say(void)
{
	send(pair[1], bytes, 1, 0);
	if (write(ends[1], bytes, 1) != 1)
		_exit(101);
}

static pid_t child(void)
{
	pid_t pid = fork();

	if (!pid) {
		fill_ring();
		spin();
		_exit(0);
	}
	return pid;
}

static void *thread(void *arg)
{
	(void)arg;
	fill_ring();
	spin();
	return NULL;
}

static int thrd(void *arg)
{
	thread(arg);
	return 0;
}

static void load(void *handle)
{
	fill_ring();
	if (handle)
		dlclose(handle);
}

/* Maps so many pieces of code that telling about them takes more than one record. */
static void map_code(void)
{
	int fd = open("/proc/self/exe", O_RDONLY);

	for (int i = 0; i < MAPPINGS; i++)
		if (mmap(NULL, 65536, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
			_exit(102);
	close(fd);
}

static void run_thread(void)
{
	pthread_t id;

	if (!pthread_create(&id, NULL, thread, NULL))
		pthread_join(id, NULL);
}

static void run_thrd(void)
{
	thrd_t id;

	if (thrd_create(&id, thrd, NULL) == thrd_success)
		thrd_join(id, NULL);
}

static void raw_fork(void)
{
	pid_t pid = _Fork();

	if (!pid) {
		fill_ring();
		spin();
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static void run_traced(void)
{
	int how = 0;
	pid_t pid = fork();

	if (!pid) {
		fill_ring();
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		spin();
		_exit(0);
	}
	waitpid(pid, &how, 0);
	if (!WIFSTOPPED(how))
		return;
	kill(pid, SIGKILL);
	_exit(108);
}

/*
 * Runs in a process that has the memory of its parent: it must not take its parent's ring for its
 * own.
 */
static int relative(void *arg)
{
	(void)arg;
	load(dlopen("libm.so.6", RTLD_NOW));
	nanosleep(&soon, NULL);
	_exit(agent_self() ? 1 : 0);
}

static void run_relative(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	int how = 1;
	pid_t pid = clone(relative, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);

	while (waitpid(pid, &how, 0) != pid)
		;
	if (how)
		_exit(107);
}

/*
 * Returns the program to be executed, or one that does not exist if there is no memory to execute
 * it in. Stops the timer, which would end the program, and hides the messages of the loader, which
 * cannot preload this program.
 */
static const char *program(void)
{
	struct itimerval never = { { 0, 0 }, { 0, 0 } };

	setitimer(ITIMER_REAL, &never, NULL);
	dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
	return state == NO_MEMORY ? "/nowhere/true" : "/bin/true";
}

static void spawn(bool by_path)
{
	pid_t pid = 0;

	if (by_path)
		posix_spawnp(&pid, program(), NULL, NULL, words, variables);
	else
		posix_spawn(&pid, program(), NULL, NULL, words, variables);
	if (pid)
		waitpid(pid, NULL, 0);
}

/* Unwind information without frames: it begins with the 0 that ends it. */
static uint32_t no_frames[4];

static void wait_for_message(void)
{
	msgsnd(queue, &letter, sizeof(letter.text), 0);
	msgrcv(queue, &letter, sizeof(letter.text), 1, 0);
	msgrcv(queue, &letter, sizeof(letter.text), 1, 0);
}

static void set_timeout(void)
{
	setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &soon_too, sizeof(soon_too));
	recv(pair[0], bytes, sizeof(bytes), 0);
}

static void suspend_aio(bool names)
{
	static struct aiocb block; /* libc writes to it for as long as the program lives */
	const struct aiocb *const list[] = { &block };
	const struct gaicb *const asked[] = { NULL };

	block = (struct aiocb){ .aio_fildes = ends[0], .aio_buf = bytes, .aio_nbytes = 1 };
	if (names)
		gai_suspend(asked, 1, &soon);
	else if (!aio_read(&block))
		aio_suspend(list, 1, &soon);
}

static void send_file(bool large)
{
	int fd = open("/proc/self/exe", O_RDONLY);

	if ((large ? sendfile64(ends[1], fd, NULL, 1) : sendfile(ends[1], fd, NULL, 1)) != 1)
		_exit(109);
	close(fd);
}

static void receive_all(void)
{
	say();
	recvmmsg(pair[0], &messages, 1, 0, &rest);
}

static void wait_for_child(void)
{
	child();
	waitid(P_ALL, 0, &info, WEXITED);
}

static int own_select(bool with_mask)
{
	FD_ZERO(&fds);
	FD_SET(pair[0], &fds);
	return with_mask ? pselect(pair[0] + 1, &fds, NULL, NULL, &soon, &none) :
			   select(pair[0] + 1, &fds, NULL, NULL, &soon_too);
}

/* A function for each hook: its name, and the statements that call it. */
#define EACH_HOOK(HOOK)                                                                          \
	HOOK(_Exit, load(dlopen("libm.so.6", RTLD_NOW)); _Exit(0))                               \
	HOOK(_Fork, raw_fork())                                                                  \
	HOOK(__deregister_frame, __register_frame(no_frames); __deregister_frame(no_frames))     \
	HOOK(__poll_chk, __poll_chk(&pollfd, 1, 2, sizeof(pollfd)))                              \
	HOOK(__ppoll_chk, __ppoll_chk(&pollfd, 1, &soon, &none, sizeof(pollfd)))                 \
	HOOK(__read_chk, say(); __read_chk(ends[0], bytes, 1, sizeof(bytes)))                    \
	HOOK(__recv_chk, say(); __recv_chk(pair[0], bytes, 1, sizeof(bytes), 0))                 \
	HOOK(__recvfrom_chk, say(); __recvfrom_chk(pair[0], bytes, 1, sizeof(bytes), 0,          \
						   (struct sockaddr *)&address, &address_size))  \
	HOOK(__register_frame, __register_frame(no_frames))                                      \
	HOOK(__sysv_signal, __sysv_signal(SIGUSR1, on_alarm); raise(SIGUSR1))                    \
	HOOK(__xpg_sigpause, __xpg_sigpause(SIGALRM))                                            \
	HOOK(_exit, load(dlopen("libm.so.6", RTLD_NOW)); _exit(0))                               \
	HOOK(accept, accept(pair[0], NULL, NULL))                                                \
	HOOK(accept4, accept4(pair[0], NULL, NULL, 0))                                           \
	HOOK(aio_suspend, suspend_aio(false))                                                    \
	HOOK(bsd_signal, bsd_signal(SIGUSR1, on_alarm); raise(SIGUSR1))                          \
	HOOK(clock_nanosleep, clock_nanosleep(CLOCK_MONOTONIC, 0, &soon, &rest))                 \
	HOOK(clone, run_relative())                                                              \
	HOOK(connect, connect(pair[0], (struct sockaddr *)&address, sizeof(address)))            \
	HOOK(dlclose, load(dlopen("libm.so.6", RTLD_NOW)))                                       \
	HOOK(dlmopen, load(dlmopen(LM_ID_BASE, "libm.so.6", RTLD_NOW)))                          \
	HOOK(dlopen, load(dlopen("libutil.so.1", RTLD_NOW)))                                     \
	HOOK(epoll_pwait, epoll_pwait(epoll, &event, 1, 2, &none))                               \
	HOOK(epoll_pwait2, epoll_pwait2(epoll, &event, 1, &soon, &none))                         \
	HOOK(epoll_wait, epoll_wait(epoll, &event, 1, 2))                                        \
	HOOK(execl, execl(program(), "true", "a", NULL))                                         \
	HOOK(execle, execle(program(), "true", "a", NULL, variables))                            \
	HOOK(execlp, execlp(program(), "true", "a", NULL))                                       \
	HOOK(execv, execv(program(), words))                                                     \
	HOOK(execve, execve(program(), words, variables))                                        \
	HOOK(execveat, execveat(AT_FDCWD, program(), words, variables, 0))                       \
	HOOK(execvp, execvp(program(), words))                                                   \
	HOOK(execvpe, execvpe(program(), words, variables))                                      \
	HOOK(fexecve, fexecve(open(program(), O_RDONLY), words, variables))                      \
	HOOK(gai_suspend, suspend_aio(true))                                                     \
	HOOK(io_getevents, io_getevents(NULL, 1, 1, NULL, &rest))                                \
	HOOK(mlockall, mlockall(MCL_CURRENT); munlockall())                                      \
	HOOK(msgrcv, wait_for_message())                                                         \
	HOOK(msgsnd, wait_for_message())                                                         \
	HOOK(nanosleep, nanosleep(&soon, &rest))                                                 \
	HOOK(pause, pause())                                                                     \
	HOOK(pidfd_spawn, hooks_spawn(pidfd_spawn, program(), words, variables))                 \
	HOOK(pidfd_spawnp, hooks_spawn(pidfd_spawnp, program(), words, variables))               \
	HOOK(poll, poll(&pollfd, 1, 2))                                                          \
	HOOK(popen, program(); hooks_popen())                                                    \
	HOOK(posix_spawn, spawn(false))                                                          \
	HOOK(posix_spawnp, spawn(true))                                                          \
	HOOK(ppoll, ppoll(&pollfd, 1, &soon, &none))                                             \
	HOOK(prctl, prctl(PR_SET_NAME, "a name"); prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))        \
	HOOK(prlimit, prlimit(0, RLIMIT_CORE, &limit, &limit))                                   \
	HOOK(prlimit64, prlimit64(0, RLIMIT_CORE, &limit64, &limit64))                           \
	HOOK(ptrace, run_traced())                                                               \
	HOOK(pselect, own_select(true))                                                          \
	HOOK(pthread_create, run_thread())                                                       \
	HOOK(pthread_sigmask, pthread_sigmask(SIG_BLOCK, &alarm_only, &none))                    \
	HOOK(read, say(); if (read(ends[0], bytes, 1) != 1) _exit(103))                          \
	HOOK(readv, say(); if (readv(ends[0], &piece, 1) != 1) _exit(104))                       \
	HOOK(recv, set_timeout())                                                                \
	HOOK(recvfrom, say(); recvfrom(pair[0], bytes, 1, 0, NULL, NULL))                        \
	HOOK(recvmmsg, receive_all())                                                            \
	HOOK(recvmsg, say(); recvmsg(pair[0], &message, 0))                                      \
	HOOK(select, own_select(false))                                                          \
	HOOK(sem_clockwait, sem_clockwait(&sem, CLOCK_REALTIME, &until))                         \
	HOOK(sem_timedwait, sem_timedwait(&sem, &until))                                         \
	HOOK(semop, op = (struct sembuf){ 0, -1, 0 }; semop(sems, &op, 1))                       \
	HOOK(semtimedop, op = (struct sembuf){ 0, -1, 0 }; semtimedop(sems, &op, 1, &soon))      \
	HOOK(send, send(pair[0], bytes, 1, 0))                                                   \
	HOOK(sendfile, send_file(false))                                                         \
	HOOK(sendfile64, send_file(true))                                                        \
	HOOK(sendmmsg, sendmmsg(pair[0], &messages, 1, 0))                                       \
	HOOK(sendmsg, sendmsg(pair[0], &message, 0))                                             \
	HOOK(sendto, sendto(pair[0], bytes, 1, 0, NULL, 0))                                      \
	HOOK(setrlimit, setrlimit(RLIMIT_CORE, &limit))                                          \
	HOOK(setrlimit64, setrlimit64(RLIMIT_CORE, &limit64))                                    \
	HOOK(setsockopt, set_timeout())                                                          \
	HOOK(sigaction, sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = on_alarm }, NULL); \
	     raise(SIGUSR1))                                                                     \
	HOOK(sigaltstack, sigaltstack(&small_stack, NULL); spin())                               \
	HOOK(sighold, sighold(SIGUSR1))                                                          \
	HOOK(sigignore, sigignore(SIGUSR1); raise(SIGUSR1))                                      \
	HOOK(siginterrupt, siginterrupt(SIGALRM, 0))                                             \
	HOOK(signal, signal(SIGUSR1, on_alarm); raise(SIGUSR1))                                  \
	HOOK(signalfd, signalfd(-1, &alarm_only, 0))                                             \
	HOOK(sigprocmask, sigprocmask(SIG_BLOCK, &alarm_only, &none))                            \
	HOOK(sigrelse, sigrelse(SIGUSR1))                                                        \
	HOOK(sigset, sigset(SIGUSR1, on_alarm); raise(SIGUSR1))                                  \
	HOOK(sigsuspend, sigsuspend(&none))                                                      \
	HOOK(sigtimedwait, sigtimedwait(&alarm_only, &info, &soon))                              \
	HOOK(sigwait, sigprocmask(SIG_BLOCK, &alarm_only, NULL); sigwait(&alarm_only, &status))  \
	HOOK(sigwaitinfo, sigprocmask(SIG_BLOCK, &alarm_only, NULL);                             \
	     sigwaitinfo(&alarm_only, &info))                                                    \
	HOOK(sleep, sleep(1))                                                                    \
	HOOK(ssignal, ssignal(SIGUSR1, on_alarm); raise(SIGUSR1))                                \
	HOOK(syscall, syscall(SYS_getpid); syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))  \
	HOOK(system, program(); if (system("true") < 0) _exit(107))                              \
	HOOK(sysv_signal, sysv_signal(SIGUSR1, on_alarm); raise(SIGUSR1))                        \
	HOOK(thrd_create, run_thrd())                                                            \
	HOOK(thrd_sleep, thrd_sleep(&soon, &rest))                                               \
	HOOK(usleep, usleep(2000))                                                               \
	HOOK(wait, child(); wait(&status))                                                       \
	HOOK(wait3, child(); wait3(&status, 0, &usage))                                          \
	HOOK(wait4, child(); wait4(-1, &status, 0, &usage))                                      \
	HOOK(waitid, wait_for_child())                                                           \
	HOOK(waitpid, child(); waitpid(-1, &status, 0))                                          \
	HOOK(wordexp, program(); hooks_wordexp())                                                \
	HOOK(write, if (write(ends[1], bytes, 1) != 1) _exit(105))                               \
	HOOK(writev, if (writev(ends[1], &piece, 1) != 1) _exit(106))

/* clang-format off */
#define FUNCTION(name, ...) static void call_##name(void) { __VA_ARGS__; }
#define ENTRY(name, ...) { #name, call_##name },
/* clang-format on */

/* Deprecated functions are called, too. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
EACH_HOOK(FUNCTION)
static const struct hook hooks[] = { EACH_HOOK(ENTRY) };

#define NR_HOOKS (sizeof(hooks) / sizeof(*hooks))

static void enter_state(void)
{
	struct rlimit little = { 1, 1 };

	if (state == STOPPED)
		atomic_store(&agent.header->stop, 1);
	if (state == NO_MEMORY)
		sys4(SYS_prlimit64, 0, RLIMIT_AS, &little, NULL);
	fill_ring();
}

/* Calls a hook in a child. What follows the call must not fail, whatever the hook does. */
static void run(const struct hook *hook)
{
	alarm(0);
	prepare();
	map_code();
	enter_state();
	spin();
	hook->call();
	spin();
	/* At its end, the agent tells once more what is mapped. */
	if (state != NO_MEMORY && dlopen("libm.so.6", RTLD_NOW))
		fill_ring();
	tidy();
	_exit(0);
}

static int point(int number, bool good, const char *text, const char *clock)
{
	printf("%sok %d - %s%s\n", good ? "" : "not ", number, text, clock);
	return !good;
}

static bool all_survive(void)
{
	bool good = agent.on;

	if (!agent.on)
		printf("# the agent did not begin\n");
	for (size_t i = 0; agent.on && i < NR_HOOKS; i++)
		good &= hook_survives(&hooks[i], run);
	/* Reset for the next state: the recorder begins anew. */
	atomic_store(&agent.header->stop, 0);
	return good;
}

/*
 * Makes what a recorder would make, and announces it in the environment. Returns false on failure.
 */
static bool be_recorder(enum rec_clock clock)
{
	struct rec_header *h;
	char value[64];
	uint64_t size;
	int fd = memfd_create("rings", MFD_ALLOW_SEALING);

	size = rec_round(sizeof(*h)) + rec_round(SLOTS * sizeof(struct rec_slot)) +
	       (uint64_t)SLOTS * rec_min_ring(REC_MIN_DEPTH);
	if (fd < 0 || ftruncate(fd, size) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK))
		return false;
	h = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (h == MAP_FAILED)
		return false;
	*h = (struct rec_header){
		.magic = REC_MAGIC,
		.version = REC_VERSION,
		.nr_slots = SLOTS,
		.ring_size = rec_min_ring(REC_MIN_DEPTH),
		.max_depth = REC_MIN_DEPTH,
		.deepest = rec_deepest(rec_min_ring(REC_MIN_DEPTH)),
		.clock = clock,
		.recorder = getpid(),
		.cookie = COOKIE,
		.period = PERIOD,
		.slots_offset = rec_round(sizeof(*h)),
		.rings_offset = rec_round(sizeof(*h)) + rec_round(SLOTS * sizeof(struct rec_slot)),
	};
	snprintf(value, sizeof(value), "/proc/%d/fd/%d %llx 1000", getpid(), fd, COOKIE);
	return !setenv(REC_ENV, value, 1);
}

/* Executes this program again, with a recorder. */
static int with_recorder(enum rec_clock clock)
{
	char *const args[] = { "full_test", NULL };

	if (be_recorder(clock))
		execv("/proc/self/exe", args);
	printf("Bail out! no recorder\n");
	return 1;
}

/* ---- A fork while another thread unmaps rings ---- */

static volatile sig_atomic_t yields; /* how often keep_rings() has let others run */
static pid_t forked;

/*
 * keep_rings() waits, with rings closed. A child of that moment has to be able to unmap rings, too: it
 * waits once more.
 */
static void on_yield(int signo)
{
	if (signo != SIGSYS || yields++)
		return;
	forked = fork();
	if (forked)
		return;
	yields = 1;
	atomic_store(&agent.takers, 1);
	agent_before_lock();
	_exit(yields < 2);
}

/* Has the kernel send SIGSYS where a thread lets others run. Returns whether it will. */
static bool catch_yields(void)
{
	static struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_yield, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { sizeof(code) / sizeof(*code), code };
	struct sigaction action = { .sa_handler = on_yield, .sa_flags = SA_NODEFER };

	/* Not by the hooks: the agent makes no system calls in a sandbox. */
	return !sigaction(SIGSYS, &action, NULL) &&
	       !sys6(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0) &&
	       !sys3(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&filter);
}

/* Returns whether a child that is made while its parent unmaps rings can do so itself. */
static bool child_unmaps(void)
{
	int how = 0;
	pid_t pid = fork();

	if (pid)
		return waitpid(pid, &how, 0) == pid && !how;
	alarm(0);
	if (!catch_yields()) {
		printf("# no filters of system calls here\n");
		_exit(0);
	}
	atomic_store(&agent.takers, 1);
	agent_before_lock();
	_exit(forked <= 0 || waitpid(forked, &how, 0) != forked || how);
}

static int states(void)
{
	const char *clock = agent.wall ? ", by wall-clock time" SANITIZED :
					 ", by CPU time" SANITIZED;
	int failed = 0, first = agent.wall ? STATES : 0;

	for (state = 0; state < STATES; state++)
		failed += point(first + state + 3, all_survive(), state_names[state], clock);
	if (agent.wall)
		failed += point(3 + 2 * STATES, child_unmaps(),
				"a child that is forked while rings are unmapped can do that, too",
				SANITIZED);
	return failed;
}

/*
 * Returns true if a signal before its time is taken as the signal of its period. In a virtual
 * machine, the hypervisor's time counts in the timer of the event but not in the clock of the
 * thread, so the signal may come before the clock has reached the end of the period. A signal
 * shortly after the end is of the period, too, but one much later is not.
 */
static bool is_of_its_period(void)
{
	uint64_t at = now(CLOCK_THREAD_CPUTIME_ID);
	struct agent_thread early = { .first_end = at + 1000000000, .first_rest = PERIOD };
	struct agent_thread soon_after = { .first_end = at, .first_rest = 1000000000 };
	struct agent_thread much_later = { .first_end = 0, .first_rest = 1 };

	while ((at = now(CLOCK_THREAD_CPUTIME_ID)) < PERIOD)
		;
	return !event_is_late(&early, at) && !event_is_late(&soon_after, at) &&
	       event_is_late(&much_later, at);
}

int main(void)
{
	int failed, how = 0;
	pid_t pid;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (getenv(REC_ENV))
		return !!states();
	printf("KTAP version 1\n1..%d\n", 3 + 2 * STATES);
	failed = point(1, hooks_are_all(hooks, NR_HOOKS, AGENT), "all hooks are called here", "");
	failed |=
		point(2, is_of_its_period(), "a signal before its time is that of its period", "");
	for (int clock = REC_CLOCK_CPU; clock <= REC_CLOCK_WALL; clock++) {
		pid = fork();
		if (!pid)
			_exit(with_recorder(clock));
		failed |= waitpid(pid, &how, 0) != pid || how;
	}
	return failed;
}
