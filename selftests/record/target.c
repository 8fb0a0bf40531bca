// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program of known behaviour for the record and trace tests: the first
 * argument says what it does, and functions are named after what they do. CPU
 * time is measured by the thread's own clock, so that a busy machine changes
 * only how long it takes. What a function truly used is told to the test, which
 * compares the profile with that.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

static double clock_s(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* A line "FUNCTION SECONDS" for the test, if it opened this file for us. */
#define TRUTH_FD 99

static void tell(const char *function, double s)
{
	char line[80];
	int n = snprintf(line, sizeof(line), "%s %.6f\n", function, s);

	/* Nobody may have asked. */
	if (write(TRUTH_FD, line, n) != n)
		errno = 0;
}

/* Uses @s seconds of this thread's CPU time in the calling function. */
#define BURN(s)                                                            \
	do {                                                               \
		double start_ = clock_s(CLOCK_THREAD_CPUTIME_ID), used_;   \
		volatile unsigned int x_ = 0;                              \
									   \
		do {                                                       \
			for (int i_ = 0; i_ < 20000; i_++)                 \
				x_ += i_;                                  \
			used_ = clock_s(CLOCK_THREAD_CPUTIME_ID) - start_; \
		} while (used_ < (s));                                     \
		tell(__func__, used_);                                     \
	} while (0)

static NOINLINE void burn(double s) { BURN(s); }
static NOINLINE void work_seventy(double s) { BURN(s); }
static NOINLINE void work_thirty(double s) { BURN(s); }
static NOINLINE void child_work(double s) { BURN(s); }
static NOINLINE void masked_work(double s) { BURN(s); }
static NOINLINE void after_exec_work(double s) { BURN(s); }

/* share SECONDS: 70 % in one function, 30 % in another. */
static int do_share(char **arg)
{
	double rest = atof(arg[0]);

	for (; rest > 0; rest -= 0.05) {
		work_seventy(0.035);
		work_thirty(0.015);
	}
	return 0;
}

static int do_burn(char **arg)
{
	burn(atof(arg[0]));
	return 0;
}

static NOINLINE void *thread_work(void *arg)
{
	BURN(*(double *)arg);
	return NULL;
}

/* threads NUMBER AT-ONCE SECONDS */
static int do_threads(char **arg)
{
	int number = atoi(arg[0]), at_once = atoi(arg[1]);
	double s = atof(arg[2]);
	pthread_t *threads = calloc(at_once, sizeof(*threads));

	for (int done = 0; done < number; done += at_once) {
		for (int i = 0; i < at_once; i++)
			if (pthread_create(&threads[i], NULL, thread_work, &s))
				return 1;
		for (int i = 0; i < at_once; i++)
			pthread_join(threads[i], NULL);
	}
	free(threads);
	return 0;
}

/* fork NUMBER SECONDS: children that do not exec. */
static int do_fork(char **arg)
{
	int number = atoi(arg[0]);
	int failed = 0, status;

	for (int i = 0; i < number; i++) {
		pid_t pid = fork();

		if (!pid) {
			child_work(atof(arg[1]));
			_exit(0);
		}
	}
	while (wait(&status) > 0)
		failed |= status;
	return !!failed;
}

/* masked SECONDS: a thread that blocks every signal, as xz's do. */
static void *masked_thread(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	masked_work(atof(arg));
	return NULL;
}

/* held SECONDS: no signal gets in for so long, whatever libc is told. */
static int do_held(char **arg)
{
	uint64_t all = ~0ull, old;

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, sizeof(all));
	masked_work(atof(arg[0]));
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, sizeof(old));
	burn(0.05);
	return 0;
}

static int do_masked(char **arg)
{
	sigset_t all, old;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_create(&thread, NULL, masked_thread, arg[0]);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return pthread_join(thread, NULL);
}

/* crash SECONDS, kill SECONDS, abort SECONDS */
static int do_crash(char **arg)
{
	burn(atof(arg[0]));
	*(volatile int *)8 = 0;
	return 0;
}

static int do_kill(char **arg)
{
	burn(atof(arg[0]));
	kill(getpid(), SIGKILL);
	return 0;
}

static int do_quick_exit(char **arg)
{
	burn(atof(arg[0]));
	_exit(atoi(arg[1]));
}

static volatile int always = 1;

/* forever: until a signal ends it. */
static int do_forever(char **arg)
{
	(void)arg;
	puts("ready");
	fflush(stdout);
	while (always)
		burn(1);
	return 0;
}

static NOINLINE int below(int n)
{
	int ret = n ? below(n - 1) : do_forever(NULL);

	return ret + 1;
}

/* forever-below DEPTH: the same, with so many frames more in each sample. */
static int do_forever_below(char **arg)
{
	return below(atoi(arg[0]));
}

static NOINLINE void *sleeping_thread(void *arg)
{
	struct timespec ts = { .tv_sec = atoi(arg) };
	double start = clock_s(CLOCK_MONOTONIC);

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
	tell("slept", clock_s(CLOCK_MONOTONIC) - start);
	tell("cpu_of_sleeper", clock_s(CLOCK_THREAD_CPUTIME_ID));
	return NULL;
}

/* sleeper SECONDS: one thread sleeps, the other burns until it wakes. */
static int do_sleeper(char **arg)
{
	double start = clock_s(CLOCK_MONOTONIC), end = start + atof(arg[0]);
	pthread_t thread;

	pthread_create(&thread, NULL, sleeping_thread, arg[0]);
	while (clock_s(CLOCK_MONOTONIC) < end)
		burn(0.01);
	tell("awake", clock_s(CLOCK_MONOTONIC) - start);
	return pthread_join(thread, NULL);
}

static _Atomic int profs;

static void on_prof(int signo)
{
	(void)signo;
	profs++;
}

/* sigprof SECONDS: a program with a profiler of its own. */
static int do_sigprof(char **arg)
{
	struct itimerval it = { { 0, 10000 }, { 0, 10000 } };

	signal(SIGPROF, on_prof);
	setitimer(ITIMER_PROF, &it, NULL);
	/* Without its signals it would not end. */
	do
		burn(atof(arg[0]));
	while (profs < 10);
	return 0;
}

static _Atomic int seen[65];

static void on_any(int signo, siginfo_t *si, void *context)
{
	(void)si;
	(void)context;
	seen[signo]++;
}

/* signals: takes all real-time signals for itself, by every way there is. */
static int do_signals(char **arg)
{
	struct sigaction sa = { .sa_sigaction = on_any,
				.sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigaction old;
	struct timespec zero = { 0, 20000000 };
	siginfo_t si;
	sigset_t all;
	int bad = 0;

	(void)arg;
	for (int s = SIGRTMIN; s <= SIGRTMAX; s++) {
		bad |= sigaction(s, NULL, &old) || old.sa_handler != SIG_DFL;
		bad |= sigaction(s, &sa, NULL);
		bad |= sigaction(s, NULL, &old) || old.sa_sigaction != on_any;
	}
	burn(0.3);
	for (int s = SIGRTMIN; s <= SIGRTMAX; s++)
		kill(getpid(), s);
	burn(0.1);
	for (int s = SIGRTMIN; s <= SIGRTMAX; s++) {
		if (seen[s] != 1) {
			printf("signal %d came %d times\n", s, seen[s]);
			bad = 1;
		}
	}
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	burn(0.3);
	while (sigtimedwait(&all, &si, &zero) > 0) {
		printf("signal %d was waiting\n", si.si_signo);
		bad = 1;
	}
	return bad;
}

static _Atomic int raw_stop;

/* Number of timers that this process has. */
static int timers(void)
{
	FILE *in = fopen("/proc/self/timers", "r");
	char line[200];
	int n = 0;

	while (in && fgets(line, sizeof(line), in))
		n += !strncmp(line, "ID:", 3);
	if (in)
		fclose(in);
	return n;
}

static NOINLINE int raw_thread_work(void *arg)
{
	volatile unsigned int x = 0;
	double start, used;

	/* The first thread looks whether this one was found. */
	while (!raw_stop)
		for (int i = 0; i < 20000; i++)
			x += i;
	start = clock_s(CLOCK_THREAD_CPUTIME_ID);
	do {
		for (int i = 0; i < 20000; i++)
			x += i;
		used = clock_s(CLOCK_THREAD_CPUTIME_ID) - start;
	} while (used < atof(arg));
	raw_stop = 2;
	syscall(SYS_exit, 0);
	return 0;
}

/*
 * raw SECONDS: a thread that libc knows nothing of; it works so long after it was
 * found, which shows by its timer.
 */
static int do_raw(char **arg)
{
	size_t size = 1 << 20;
	char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	int cut = 0;

	if (clone(raw_thread_work, stack + size,
		  CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
			  CLONE_THREAD | CLONE_SYSVSEM,
		  arg[0]) < 0)
		return 1;
	/* Which is done in this thread, and must not shorten its sleep. */
	while (timers() < 2)
		cut |= usleep(10000);
	raw_stop = 1;
	while (raw_stop < 2)
		usleep(10000);
	return cut ? 2 : 0;
}

/* exec SECONDS: works, then becomes another program image. */
static int do_exec(char **arg)
{
	burn(atof(arg[0]));
	execl("/proc/self/exe", "target", "after-exec", arg[0], NULL);
	return 1;
}

static int do_after_exec(char **arg)
{
	after_exec_work(atof(arg[0]));
	return 0;
}

/* spawn HOW SECONDS: a child without the environment of its parent. */
static int do_spawn(char **arg)
{
	char *argv[] = { "target", "after-exec", arg[1], NULL };
	char *envp[] = { "PATH=/bin", NULL };
	const char *self = "/proc/self/exe";
	int status = 1;
	pid_t pid = 0;

	if (!strcmp(arg[0], "spawn")) {
		if (posix_spawn(&pid, self, NULL, NULL, argv, envp))
			return 1;
	} else if (!strcmp(arg[0], "vfork")) {
		pid = vfork();
		if (!pid) {
			execve(self, argv, envp);
			_exit(1);
		}
	} else {
		pid = fork();
		if (!pid) {
			clearenv();
			execv(self, argv);
			_exit(1);
		}
	}
	waitpid(pid, &status, 0);
	return !!status;
}

/* daemon SECONDS: a child that outlives its parent. */
static int do_daemon(char **arg)
{
	int ready[2];
	pid_t pid;
	char c;

	burn(0.2);
	if (pipe(ready))
		return 1;
	pid = fork();
	if (pid) {
		printf("%d\n", pid);
		return read(ready[0], &c, 1) != 1;
	}
	setsid();
	if (write(ready[1], "x", 1) != 1)
		return 1;
	sleep(atoi(arg[0]));
	return 0;
}

#ifndef STATIC
/*
 * plugins: two libraries one after the other, likely at one address. They are
 * found by this program's DT_RUNPATH, which the loader takes only if it sees
 * that this program calls dlopen(), not somebody in between.
 */
static int run_plugin(const char *name, int close)
{
	char path[64], symbol[64];
	int (*fn)(long);
	void *handle;
	double start;

	snprintf(path, sizeof(path), "plugin-%s.so", name);
	snprintf(symbol, sizeof(symbol), "plugin_%s", name);
	handle = dlopen(path, RTLD_NOW);
	if (!handle)
		return 1;
	*(void **)&fn = dlsym(handle, symbol);
	start = clock_s(CLOCK_THREAD_CPUTIME_ID);
	fn(250);
	tell(symbol, clock_s(CLOCK_THREAD_CPUTIME_ID) - start);
	printf("%s at %p\n", name, (void *)fn);
	if (close)
		dlclose(handle);
	return 0;
}

static int do_plugins(char **arg)
{
	(void)arg;
	return run_plugin("one", 1) || run_plugin("two", 1);
}

/* late: loads a library, uses it and is gone at once. */
static int do_late(char **arg)
{
	(void)arg;
	if (run_plugin("two", 0))
		return 1;
	_exit(0);
}
#endif

static int expect(const char *what, int ok, double took, double wanted)
{
	if (ok && took >= wanted - 0.002)
		return 0;
	printf("%s: %s after %.4f s of %.4f s\n", what,
	       ok ? "returned" : strerror(errno), took, wanted);
	return 1;
}

#define TIMED(what, wanted, call)                                         \
	do {                                                              \
		double at_ = clock_s(CLOCK_MONOTONIC);                    \
		int ok_ = (call);                                         \
									  \
		bad |= expect(what, ok_, clock_s(CLOCK_MONOTONIC) - at_,  \
			      wanted);                                    \
	} while (0)

static void on_alarm(int signo)
{
	(void)signo;
}

static int handlers_bad;

/* What a handler waits for must last, and end the call that it interrupted. */
static void on_alarm_wait(int signo)
{
	int saved = errno, bad = 0;

	(void)signo;
	TIMED("poll in a handler", 0.1, !poll(NULL, 0, 100));
	handlers_bad |= bad;
	errno = saved;
}

/* What _FORTIFY_SOURCE makes of poll(). */
int __poll_chk(struct pollfd *fds, nfds_t nr, int timeout, size_t size);

/* sleeps: calls that signals interrupt must last as long as asked. */
static int do_sleeps(char **arg)
{
	struct timespec ts = { .tv_nsec = 300000000 };
	struct timeval tv = { .tv_usec = 300000 };
	struct sigaction sa = { .sa_handler = on_alarm };
	/* Again and again: the first one may come before the call sleeps. */
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
	TIMED("clock_nanosleep", 0.3,
	      !clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL));
	TIMED("usleep", 0.3, !usleep(300000));
	TIMED("sleep", 1, !sleep(1));
	TIMED("poll", 0.3, !poll(NULL, 0, 300));
	TIMED("ppoll", 0.3, !ppoll(NULL, 0, &ts, NULL));
	TIMED("select", 0.3, !select(0, NULL, NULL, NULL, &tv));
	TIMED("pselect", 0.3, !pselect(0, NULL, NULL, NULL, &ts, NULL));
	TIMED("epoll_wait", 0.3, !epoll_wait(ep, &event, 1, 300));
	TIMED("epoll_pwait", 0.3, !epoll_pwait(ep, &event, 1, 300, NULL));
	TIMED("epoll_pwait2", 0.3, !epoll_pwait2(ep, &event, 1, &ts, NULL));
	/* With a mask, one that lets all signals in and one that lets none. */
	sigemptyset(&none);
	sigfillset(&all);
	TIMED("ppoll, mask", 0.3, !ppoll(NULL, 0, &ts, &none));
	TIMED("pselect, mask", 0.3, !pselect(0, NULL, NULL, NULL, &ts, &none));
	TIMED("epoll_pwait, mask", 0.3, !epoll_pwait(ep, &event, 1, 300, &all));
	TIMED("ppoll, no time", 0, ppoll(NULL, 0, &(struct timespec){ -1, 0 }, NULL) < 0 &&
	      errno == EINVAL);
	TIMED("__poll_chk", 0.3, !__poll_chk(NULL, 0, 300, 0));
	TIMED("thrd_sleep", 0.3, !thrd_sleep(&ts, NULL));
	TIMED("semtimedop", 0.3, semtimedop(sem, &down, 1, &ts) && errno == EAGAIN);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	TIMED("sigtimedwait", 0.3, sigtimedwait(&usr1, NULL, &ts) < 0 &&
	      errno == EAGAIN);
	/* A signal that waits to be asked for is not one that interrupts. */
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	raise(SIGUSR1);
	TIMED("poll with a signal pending", 0.3, !poll(NULL, 0, 300));
	TIMED("sigwaitinfo", 0, sigwaitinfo(&usr1, NULL) == SIGUSR1);
	/*
	 * And the program's own signals must still come through. From the timer's
	 * start on, as the call may begin long after it.
	 */
	sigaction(SIGALRM, &sa, NULL);
	TIMED("own EINTR", 0.2, !setitimer(ITIMER_REAL, &it, NULL) &&
	      poll(NULL, 0, 1000000) < 0 && errno == EINTR);
	TIMED("sigsuspend", 0.2, !setitimer(ITIMER_REAL, &it, NULL) &&
	      sigsuspend(&none) < 0 && errno == EINTR);
	TIMED("pause", 0.2, !setitimer(ITIMER_REAL, &it, NULL) &&
	      pause() < 0 && errno == EINTR);
	TIMED("msgrcv", 0.2, !setitimer(ITIMER_REAL, &it, NULL) &&
	      msgrcv(queue, text, 1, 0, 0) < 0 && errno == EINTR);
	sa.sa_handler = on_alarm_wait;
	sigaction(SIGALRM, &sa, NULL);
	it.it_interval.tv_usec = 900000;
	TIMED("a handler that waits", 0.3, !setitimer(ITIMER_REAL, &it, NULL) &&
	      poll(NULL, 0, 1000000) < 0 && errno == EINTR);
	semctl(sem, 0, IPC_RMID);
	msgctl(queue, IPC_RMID, NULL);
	return bad | handlers_bad;
}

static int block_pipe[2];

static NOINLINE void *blocked_in_read(void *arg)
{
	char c;

	(void)arg;
	return read(block_pipe[0], &c, 1) < 0 ? block_pipe : NULL;
}

static NOINLINE void *busy_forever(void *arg)
{
	(void)arg;
	for (;;)
		burn(1);
	return NULL;
}

static sem_t never;

static NOINLINE void *waiting_for_semaphore(void *arg)
{
	(void)arg;
	sem_wait(&never);
	return NULL;
}

/* stacks: threads of known stacks, for trace. */
static int do_stacks(char **arg)
{
	static void *(*const what[])(void *) = {
		blocked_in_read, waiting_for_semaphore, busy_forever,
	};
	pthread_t thread;

	(void)arg;
	if (pipe(block_pipe) || sem_init(&never, 0, 0))
		return 1;
	for (int i = 0; i < 3; i++)
		if (pthread_create(&thread, NULL, what[i], NULL))
			return 1;
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

/* waits: threads in calls that a stop may end, until a line is read; says if one did. */
static int do_waits(char **arg)
{
	static void *(*const what[])(void *) = {
		in_epoll_wait, in_semop, in_sigwaitinfo,
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

static NOINLINE void in_handler(int signo)
{
	(void)signo;
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}

static NOINLINE void interrupted_here(void)
{
	raise(SIGUSR1);
}

/* altstack: blocked in a handler on an alternate stack, for trace. */
static int do_altstack(char **arg)
{
	stack_t ss = { .ss_sp = malloc(65536), .ss_size = 65536 };
	struct sigaction sa = { .sa_handler = in_handler,
				.sa_flags = SA_ONSTACK };

	(void)arg;
	sigaltstack(&ss, NULL);
	sigaction(SIGUSR1, &sa, NULL);
	interrupted_here();
	return 0;
}

static NOINLINE int deep(int n)
{
	volatile char pad[512];

	pad[0] = n;
	if (n)
		return deep(n - 1) + pad[0];
	puts("ready");
	fflush(stdout);
	pause();
	return pad[0];
}

static int do_deep(char **arg)
{
	return deep(atoi(arg[0]));
}

/*
 * scribble SECONDS: a child that writes nonsense into the memory it shares
 * with the recorder; the parent goes on.
 */
static uint64_t *find_shared(size_t *words)
{
	unsigned long start = 0, end = 0;
	char line[512];
	FILE *in = fopen("/proc/self/maps", "r");

	while (in && fgets(line, sizeof(line), in))
		if (strstr(line, "/memfd:shstk-record") &&
		    sscanf(line, "%lx-%lx", &start, &end) == 2)
			break;
	if (in)
		fclose(in);
	*words = (end - start) / 8;
	return (uint64_t *)start;
}

static void scribble(uint64_t *shared, size_t words, double s)
{
	double end = clock_s(CLOCK_THREAD_CPUTIME_ID) + s;
	uint64_t x = 88172645463325252ULL;
	/* All slots, and the first 64 rings of 256 KiB. */
	size_t slots = 8192 + 4096 * 256 / 8;
	size_t most = slots + 64 * 32768;

	if (most > words)
		most = words;
	while (clock_s(CLOCK_THREAD_CPUTIME_ID) < end) {
		for (int i = 0; i < 2000; i++) {
			size_t at;

			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			/* Not the header: the agent here must live on. */
			at = 8192 + x % (((x >> 60) & 1 ? slots : most) - 8192);
			/* Often small numbers: they pass more checks. */
			shared[at] = x >> 59 & 1 ? x : x >> 32 & 0x3ff;
		}
	}
}

static int do_scribble(char **arg)
{
	uint64_t *shared;
	size_t words;
	pid_t pid;

	shared = find_shared(&words);
	if (!shared)
		return 1;
	pid = fork();
	if (!pid) {
		scribble(shared, words, atof(arg[0]));
		_exit(0);
	}
	burn(0.3);
	waitpid(pid, NULL, 0);
	return 23;
}

/* smallstack SECONDS: signals come on an alternate stack of 8 KiB. */
static int do_smallstack(char **arg)
{
	char *p = mmap(NULL, 4 * 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	stack_t ss = { .ss_sp = p + 8192, .ss_size = 8192 };

	if (mprotect(ss.ss_sp, ss.ss_size, PROT_READ | PROT_WRITE) ||
	    sigaltstack(&ss, NULL))
		return 1;
	burn(atof(arg[0]));
	return 0;
}

static NOINLINE void sandboxed_work(double s) { BURN(s); }

static NOINLINE void *sandboxed_thread(void *arg)
{
	sandboxed_work(atof(arg));
	return NULL;
}

/*
 * sandbox SECONDS: gives up all system calls but those it needs itself, then
 * works, also in a new thread. Any other call ends the process.
 */
static int do_sandbox(char **arg)
{
	static const int allowed[] = {
		SYS_rt_sigreturn, SYS_exit_group, SYS_exit, SYS_clock_gettime,
		SYS_futex, SYS_write, SYS_mmap, SYS_munmap, SYS_mprotect,
		SYS_madvise, SYS_clone3, SYS_clone, SYS_set_robust_list,
		SYS_rseq, SYS_rt_sigprocmask, SYS_brk, SYS_restart_syscall,
		SYS_getrandom, SYS_rt_sigaction,
	};
	enum { N = sizeof(allowed) / sizeof(allowed[0]) };
	struct sock_filter code[N + 3];
	struct sock_fprog prog = { .len = N + 3, .filter = code };
	pthread_t thread;

	code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);
	for (int i = 0; i < N; i++)
		code[i + 1] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, allowed[i], N - i, 0);
	code[N + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
						   SECCOMP_RET_KILL_PROCESS);
	code[N + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
						   SECCOMP_RET_ALLOW);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog))
		return 4;
	sandboxed_work(atof(arg[0]));
	if (pthread_create(&thread, NULL, sandboxed_thread, arg[0]))
		return 5;
	pthread_join(thread, NULL);
	return 17;
}

static int do_exit(char **arg)
{
	return atoi(arg[0]);
}

static const struct {
	const char *name;
	int args;
	int (*run)(char **arg);
} jobs[] = {
	{ "share", 1, do_share },	{ "burn", 1, do_burn },
	{ "threads", 3, do_threads },	{ "fork", 2, do_fork },
	{ "masked", 1, do_masked },	{ "held", 1, do_held },	{ "crash", 1, do_crash },
	{ "kill", 1, do_kill },		{ "quick-exit", 2, do_quick_exit },
	{ "forever", 0, do_forever },	{ "forever-below", 1, do_forever_below },
	{ "sleeper", 1, do_sleeper },
	{ "sigprof", 1, do_sigprof },	{ "signals", 0, do_signals },
	{ "raw", 1, do_raw },		{ "exec", 1, do_exec },
	{ "after-exec", 1, do_after_exec }, { "spawn", 2, do_spawn },
	{ "daemon", 1, do_daemon },	{ "sleeps", 0, do_sleeps },
	{ "stacks", 0, do_stacks },	{ "waits", 0, do_waits },
	{ "altstack", 0, do_altstack },
	{ "sandbox", 1, do_sandbox },	{ "smallstack", 1, do_smallstack },
	{ "scribble", 1, do_scribble },	{ "deep", 1, do_deep },		{ "exit", 1, do_exit },
#ifndef STATIC
	{ "plugins", 0, do_plugins },	{ "late", 0, do_late },
#endif
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(jobs) / sizeof(jobs[0]); i++)
		if (!strcmp(argv[1], jobs[i].name) && argc == 2 + jobs[i].args)
			return jobs[i].run(argv + 2);
	fprintf(stderr, "target: bad arguments\n");
	return 99;
}
