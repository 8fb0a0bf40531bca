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
#include <inttypes.h>
#include <linux/filter.h>
#include <link.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
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
#include <sys/signalfd.h>
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

/* A function a line: all are the same but for their names. */
/* clang-format off */
static NOINLINE void burn(double s) { BURN(s); }
static NOINLINE void work_seventy(double s) { BURN(s); }
static NOINLINE void work_thirty(double s) { BURN(s); }
static NOINLINE void child_work(double s) { BURN(s); }
static NOINLINE void masked_work(double s) { BURN(s); }
static NOINLINE void after_exec_work(double s) { BURN(s); }
/* clang-format on */

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

static pthread_barrier_t barrier;

static NOINLINE void *at_barrier(void *arg)
{
	pthread_barrier_wait(&barrier);
	return arg;
}

/* crowd NUMBER SECONDS: so many threads wait for the first one, which works. */
static int do_crowd(char **arg)
{
	int number = atoi(arg[0]);
	pthread_t *threads = calloc(number, sizeof(*threads));
	pthread_attr_t attr;

	pthread_barrier_init(&barrier, NULL, number + 1);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	for (int i = 0; i < number; i++)
		if (pthread_create(&threads[i], &attr, at_barrier, NULL))
			return 1;
	burn(atof(arg[1]));
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < number; i++)
		pthread_join(threads[i], NULL);
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

static NOINLINE void handler_work(double s)
{
	BURN(s);
}

static void on_tick(int signo)
{
	(void)signo;
	handler_work(0.02);
}

/* handler SECONDS: half of them in a handler that blocks all signals. */
static int do_handler(char **arg)
{
	struct sigaction sa = { .sa_handler = on_tick };

	sigfillset(&sa.sa_mask);
	sigaction(SIGALRM, &sa, NULL);
	for (double left = atof(arg[0]); left > 0; left -= 0.04) {
		burn(0.02);
		raise(SIGALRM);
	}
	return 0;
}

/* Frames for several pages, one of which can't be read while time passes below it. */
static NOINLINE int guard_below(int n, double s)
{
	size_t size = sysconf(_SC_PAGESIZE);
	char *page = (char *)(((uintptr_t)&n & -size) + 2 * size);
	volatile char frame[512];

	frame[0] = n;
	if (n)
		return guard_below(n - 1, s) + frame[0] - n;
	burn(s / 3);
	mprotect(page, size, PROT_NONE);
	burn(s / 3);
	mprotect(page, size, PROT_READ | PROT_WRITE);
	burn(s / 3);
	return 0;
}

static NOINLINE void *guarded(void *arg)
{
	guard_below(100, atof(arg));
	return NULL;
}

/* guarded SECONDS: in each of two threads a page of the stack is a guard for a while. */
static int do_guarded(char **arg)
{
	pthread_t thread;

	guarded(arg[0]);
	return pthread_create(&thread, NULL, guarded, arg[0]) || pthread_join(thread, NULL);
}

static void count_alarm(int signo)
{
	(void)signo;
}

static void give_up(int signo)
{
	(void)signo;
	_exit(1);
}

/* Far from the start of the stack: a signal is to come while that is read. */
static NOINLINE int pause_below(int n, long us)
{
	struct itimerval it = { .it_value = { .tv_usec = us } };
	volatile char frame[64];

	frame[0] = n;
	if (n)
		return pause_below(n - 1, us) + frame[0] - (char)n;
	setitimer(ITIMER_REAL, &it, NULL);
	pause();
	return 0;
}

/* How many of 40 processes wait in vain for an alarm, as it comes before they wait. */
static int do_soon(char **arg)
{
	struct sigaction act = { .sa_handler = count_alarm };
	struct itimerspec limit = { .it_value.tv_sec = 2 };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2 };
	int lost = 0, status;
	timer_t timer;

	(void)arg;
	sigaction(SIGALRM, &act, NULL);
	signal(SIGUSR2, give_up);
	for (int i = 0; i < 40; i++) {
		pid_t pid = fork();

		if (!pid) {
			timer_create(CLOCK_MONOTONIC, &event, &timer);
			timer_settime(timer, 0, &limit, NULL);
			_exit(pause_below(2000, 50 + 10 * i));
		}
		if (waitpid(pid, &status, 0) != pid)
			return 100;
		lost += !!status;
	}
	return lost;
}

#if defined(__x86_64__)
/* struct kernel_sigaction, with the handler that the kernel really calls. */
struct kernel_action {
	void *handler;
	unsigned long flags;
	void *restorer;
	uint64_t mask;
};

/* Handlers that call another one without aligning the stack as the ABI has it. */
void *unaligned_to[2] __attribute__((used));
void unaligned_0(int signo);
void unaligned_1(int signo);
__asm__(".text\n"
	"unaligned_0:\n"
	"	call *unaligned_to(%rip)\n"
	"	ret\n"
	"unaligned_1:\n"
	"	call *unaligned_to+8(%rip)\n"
	"	ret\n");

/* Past libc: what the kernel has, not what the agent says. */
static long kernels_action(long signo, const struct kernel_action *act, struct kernel_action *old)
{
	register long size __asm__("r10") = 8;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(SYS_rt_sigaction), "D"(signo), "S"(act), "d"(old), "r"(size)
			 : "rcx", "r11", "memory");
	return ret;
}

static int put_between(int signo, int nr, void (*handler)(int))
{
	struct kernel_action action;

	if (kernels_action(signo, NULL, &action) || !action.handler)
		return 0;
	unaligned_to[nr] = action.handler;
	action.handler = (void *)handler;
	return !kernels_action(signo, &action, NULL);
}

static volatile sig_atomic_t nr_plain;

/* The compiler may use aligned moves for neither this one nor the agent's. */
__attribute__((force_align_arg_pointer)) static void count_plain(int signo)
{
	(void)signo;
	nr_plain++;
}

/* unaligned SECONDS: works, with its own and the agent's handler entered so. */
static int do_unaligned(char **arg)
{
	int found = 0;

	signal(SIGUSR1, count_plain);
	for (int signo = SIGRTMIN + 1; signo <= SIGRTMAX; signo++)
		found += put_between(signo, 0, unaligned_0);
	if (!put_between(SIGUSR1, 1, unaligned_1))
		return 2;
	for (int i = 0; i < 10; i++) {
		burn(atof(arg[0]) / 10);
		raise(SIGUSR1);
	}
	/* By itself there is no handler but its own. */
	return nr_plain != 10 ? 3 : found;
}
#endif

static int differ(const char *what, const sigset_t *wanted, const sigset_t *got)
{
	int bad = 0;

	for (int s = 1; s <= SIGRTMAX; s++) {
		if (s == SIGKILL || s == SIGSTOP || (s > 31 && s < SIGRTMIN) ||
		    sigismember(wanted, s) == sigismember(got, s))
			continue;
		printf("%s: signal %d reads back %d\n", what, s, sigismember(got, s));
		bad = 1;
	}
	return bad;
}

static void *masks_thread(void *arg)
{
	sigset_t got;

	pthread_sigmask(SIG_BLOCK, NULL, &got);
	return (void *)(long)differ("mask of a new thread", arg, &got);
}

static void plain_handler(int signo)
{
	(void)signo;
}

/* The action for @signo is as it was set, whatever the call that set it. */
static int action_differs(const char *what, int signo, void (*handler)(int), int flags,
			  const sigset_t *mask)
{
	struct sigaction got;

	if (sigaction(signo, NULL, &got))
		return 1;
	got.sa_flags &= ~0x04000000; /* SA_RESTORER, libc's own */
	if (got.sa_handler != handler || got.sa_flags != flags) {
		printf("%s: handler %p flags %#x, not %p %#x\n", what, (void *)got.sa_handler,
		       got.sa_flags, (void *)handler, flags);
		return 1;
	}
	return differ(what, mask, &got.sa_mask);
}

/* masks: what a program sets of masks and actions reads back as it was set. */
static int do_masks(char **arg)
{
	struct sigaction sa = { .sa_handler = plain_handler }, old;
	sigset_t all, none, one, got;
	pthread_t thread;
	void *ret;
	int bad = 0;

	(void)arg;
	sigfillset(&all);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigprocmask(SIG_BLOCK, NULL, &got);
	bad |= differ("sigprocmask", &all, &got);
	pthread_sigmask(SIG_UNBLOCK, &none, &got);
	bad |= differ("pthread_sigmask", &all, &got);
	pthread_create(&thread, NULL, masks_thread, &all);
	pthread_join(thread, &ret);
	bad |= !!ret;
	sigprocmask(SIG_UNBLOCK, &all, &got);
	bad |= differ("before SIG_UNBLOCK", &all, &got);
	sigprocmask(SIG_SETMASK, NULL, &got);
	bad |= differ("after SIG_UNBLOCK", &none, &got);

	sa.sa_mask = all;
	bad |= sigaction(SIGUSR1, &sa, NULL);
	bad |= action_differs("sigaction", SIGUSR1, plain_handler, 0, &all);
	sa.sa_mask = none;
	sa.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK | SA_NODEFER;
	bad |= sigaction(SIGUSR1, &sa, &old);
	bad |= old.sa_handler != plain_handler || differ("old action", &all, &old.sa_mask);
	bad |= action_differs("sigaction again", SIGUSR1, plain_handler, sa.sa_flags, &none);
	sigemptyset(&one);
	sigaddset(&one, SIGUSR1);
	bad |= signal(SIGUSR1, SIG_DFL) != plain_handler;
	bad |= signal(SIGUSR1, plain_handler) != SIG_DFL;
	bad |= action_differs("signal", SIGUSR1, plain_handler, SA_RESTART, &one);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
	siginterrupt(SIGUSR1, 1);
#pragma GCC diagnostic pop
	bad |= action_differs("siginterrupt", SIGUSR1, plain_handler, 0, &one);
	bad |= sysv_signal(SIGUSR1, plain_handler) != plain_handler;
	bad |= action_differs("sysv_signal", SIGUSR1, plain_handler, SA_RESETHAND | SA_NODEFER,
			      &none);
	raise(SIGUSR1);
	bad |= action_differs("behind SA_RESETHAND", SIGUSR1, SIG_DFL, SA_RESETHAND | SA_NODEFER,
			      &none);
	return bad;
}

/* What the system call takes. */
struct numbered_action {
	void (*handler)(int signo);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

static long by_number(int signo, const void *act, void *old)
{
	return syscall(SYS_rt_sigaction, signo, act, old, 8);
}

/*
 * The signals that this process ignores, as the kernel has it. Some are inherited: nohup(1) has
 * SIGHUP ignored, a shell's "&" SIGINT and SIGQUIT, and posix_spawn(3) the two that libc keeps.
 */
static uint64_t ignored_signals(void)
{
	FILE *in = fopen("/proc/self/status", "r");
	char line[200];
	uint64_t set = 0;

	while (in && fgets(line, sizeof(line), in))
		if (sscanf(line, "SigIgn: %" SCNx64, &set) == 1)
			break;
	if (in)
		fclose(in);
	return set;
}

/* Is what was read the action that a signal began with? */
static bool is_inherited(const struct numbered_action *act, int signo, uint64_t ignored)
{
	return act->handler == (ignored >> (signo - 1) & 1 ? SIG_IGN : SIG_DFL);
}

/* Gives all signals their default action, as programs do in processes that they make. */
static int reset_by_number(uint64_t ignored)
{
	struct numbered_action act;

	for (int s = 1; s <= SIGRTMAX; s++) {
		if (s == SIGKILL || s == SIGSTOP)
			continue;
		if (by_number(s, NULL, &act) || !is_inherited(&act, s, ignored)) {
			printf("signal %d: the action was %p\n", s, (void *)act.handler);
			return 2;
		}
		act.handler = SIG_DFL;
		if (by_number(s, &act, NULL))
			return 3;
	}
	burn(0.3);
	return 7;
}

/* A child that has reset all signals works, and ends by itself. */
static int child_resets(uint64_t ignored)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		status = reset_by_number(ignored);
		fflush(stdout);
		_exit(status);
	}
	if (waitpid(pid, &status, 0) != pid || status == 7 << 8)
		return 0;
	printf("the child ended with %#x\n", status);
	return 1;
}

/* No pointer that is bad is an error of the program's for one signal, and not for another. */
static int bad_pointers_are_told(void)
{
	void *bad = (void *)8;

	for (int s = SIGRTMIN; s <= SIGRTMAX; s++) {
		if (!by_number(s, bad, NULL) || errno != EFAULT || !by_number(s, NULL, bad) ||
		    errno != EFAULT) {
			printf("signal %d: a bad pointer\n", s);
			return 1;
		}
	}
	return 0;
}

/* The actions that were set by one way are read by the other. */
static int do_by_number(char **arg)
{
	uint64_t ignored = ignored_signals();
	struct numbered_action act;
	struct sigaction got;
	int bad = child_resets(ignored) | bad_pointers_are_told();

	(void)arg;
	signal(SIGUSR1, plain_handler);
	for (int s = SIGRTMIN; s <= SIGRTMAX; s++) {
		if (by_number(s, NULL, &act) || !is_inherited(&act, s, ignored))
			return 8;
		act = (struct numbered_action){ .handler = SIG_IGN };
		if (by_number(s, &act, NULL) || sigaction(s, NULL, &got))
			return 9;
		if (got.sa_handler != SIG_IGN) {
			printf("signal %d: not the action that was set\n", s);
			bad = 1;
		}
	}
	if (by_number(SIGUSR1, NULL, &act) || act.handler != plain_handler) {
		printf("another handler than the program's\n");
		bad = 1;
	}
	burn(0.1);
	return bad;
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
	struct sigaction sa = { .sa_sigaction = on_any, .sa_flags = SA_SIGINFO | SA_RESTART };
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

/*
 * What a program may do with a real-time signal that it handles not, or in some of its threads
 * only: each way in a process of its own, for each signal. Returns 0 if all is as it has to be.
 */
static sigset_t just(int signo)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signo);
	return set;
}

static volatile sig_atomic_t came, came_value, came_code;

static void note_signal(int signo, siginfo_t *si, void *context)
{
	(void)context;
	came = came * 100 + signo;
	came_value = si->si_value.sival_int;
	came_code = si->si_code;
}

static int is_waited_for(int signo)
{
	const union sigval value = { .sival_int = 7 };
	const struct timespec most = { 20, 0 };
	sigset_t set = just(signo);
	siginfo_t si;

	sigprocmask(SIG_BLOCK, &set, NULL);
	burn(0.05);
	if (sigqueue(getpid(), signo, value) || sigtimedwait(&set, &si, &most) != signo)
		return 1;
	return si.si_code != SI_QUEUE || si.si_value.sival_int != 7 || si.si_pid != getpid();
}

static int is_read(int signo)
{
	sigset_t set = just(signo);
	struct signalfd_siginfo si;
	struct pollfd p = { .events = POLLIN };

	sigprocmask(SIG_BLOCK, &set, NULL);
	p.fd = signalfd(-1, &set, 0);
	burn(0.05);
	if (p.fd < 0 || poll(&p, 1, 50)) /* nothing but what is sent */
		return 1;
	kill(getpid(), signo);
	return poll(&p, 1, 20000) != 1 || read(p.fd, &si, sizeof(si)) != sizeof(si) ||
	       si.ssi_signo != (uint32_t)signo || si.ssi_code != SI_USER;
}

static int is_pending(int signo)
{
	sigset_t set = just(signo), got;

	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(signo);
	burn(0.05);
	sigpending(&got);
	if (!sigismember(&got, signo))
		return 1;
	signal(signo, SIG_IGN);
	sigpending(&got);
	return sigismember(&got, signo);
}

static int comes_by_timer(int signo)
{
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = signo };
	struct itimerspec when = { .it_value = { 0, 20000000 } };
	const struct timespec most = { 20, 0 };
	sigset_t set = just(signo);
	siginfo_t si;
	timer_t timer;

	ev.sigev_value.sival_int = 11;
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (timer_create(CLOCK_MONOTONIC, &ev, &timer) || timer_settime(timer, 0, &when, NULL))
		return 1;
	burn(0.05);
	return sigtimedwait(&set, &si, &most) != signo || si.si_code != SI_TIMER ||
	       si.si_value.sival_int != 11;
}

static int is_handled(int signo)
{
	struct sigaction act = { .sa_sigaction = note_signal, .sa_flags = SA_SIGINFO }, old;
	const union sigval value = { .sival_int = 5 };
	sigset_t mask, all;

	sigfillset(&all);
	sigemptyset(&act.sa_mask);
	burn(0.05);
	if (sigaction(signo, NULL, &old) || old.sa_handler != SIG_DFL ||
	    sigaction(signo, &act, NULL) || sigaction(signo, NULL, &old) ||
	    old.sa_sigaction != note_signal)
		return 1;
	sigqueue(getpid(), signo, value);
	if (came != signo || came_value != 5 || came_code != SI_QUEUE)
		return 2;
	sigprocmask(SIG_SETMASK, &all, &mask);
	raise(signo);
	burn(0.05);
	if (came != signo)
		return 3;
	sigprocmask(SIG_SETMASK, &mask, NULL);
	return came != signo * 101 || signal(signo, SIG_DFL) == SIG_ERR;
}

/* Blocked by a set of all signals, and sent by another process before the program names it. */
static int is_kept(int signo)
{
	sigset_t all, got;
	int status;
	pid_t pid;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	pid = fork();
	if (!pid)
		_exit(kill(getppid(), signo));
	if (waitpid(pid, &status, 0) != pid || status)
		return 1;
	burn(0.05);
	sigpending(&got);
	return !sigismember(&got, signo);
}

static int is_ignored(int signo)
{
	signal(signo, SIG_IGN);
	raise(signo);
	burn(0.05);
	raise(signo);
	return 0;
}

static _Atomic int other_runs, other_ends;

static void *wait_in_thread(void *arg)
{
	const struct timespec most = { 20, 0 };
	sigset_t set = just(*(int *)arg);

	other_runs = 1;
	burn(0.05);
	return (void *)(long)sigtimedwait(&set, NULL, &most);
}

static void *work_in_thread(void *arg)
{
	(void)arg;
	while (!other_ends)
		burn(0.01);
	return NULL;
}

/* All threads have it blocked, one waits for it, and the others work meanwhile. */
static int is_taken_by_a_thread(int signo)
{
	sigset_t set = just(signo);
	pthread_t waiter, worker;
	void *ret;

	pthread_create(&worker, NULL, work_in_thread, NULL);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	pthread_create(&waiter, NULL, wait_in_thread, &signo);
	while (!other_runs)
		usleep(1000);
	burn(0.05);
	pthread_kill(waiter, signo);
	pthread_join(waiter, &ret);
	other_ends = 1;
	pthread_join(worker, NULL);
	return (long)ret != signo;
}

static int ends_it(int signo)
{
	burn(0.05);
	raise(signo);
	return 0;
}

static const struct {
	const char *what;
	int (*use)(int signo);
	bool ends; /* by that signal */
} uses[] = {
	{ "is waited for", is_waited_for, false }, { "is read", is_read, false },
	{ "is pending", is_pending, false },	   { "comes by a timer", comes_by_timer, false },
	{ "is handled", is_handled, false },	   { "is kept", is_kept, false },
	{ "is ignored", is_ignored, false },	   { "is taken", is_taken_by_a_thread, false },
	{ "ends the program", ends_it, true },
};

/* uses FIRST LAST: so many of the last real-time signals, in all these ways. */
static int do_uses(char **arg)
{
	int bad = 0, status;

	for (int signo = SIGRTMAX - atoi(arg[1]); signo <= SIGRTMAX - atoi(arg[0]); signo++) {
		for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
			pid_t pid = fork();

			if (!pid)
				_exit(uses[i].use(signo));
			while (waitpid(pid, &status, 0) != pid)
				;
			if (status == (uses[i].ends ? signo : 0))
				continue;
			printf("signal %d %s: ended with %#x\n", signo, uses[i].what, status);
			bad = 1;
		}
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
		  CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM,
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

static NOINLINE void child_sleeps(void)
{
	sleep(100);
}

static bool is_sleeping(pid_t pid)
{
	char path[32], text[64] = "";
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	in = fopen(path, "r");
	if (!in || !fgets(text, sizeof(text), in))
		return false;
	fclose(in);
	return strstr(text, ") S ");
}

/* raw-fork: a child without fork() waits when this process ends. */
static int do_raw_fork(char **arg)
{
	pid_t pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	(void)arg;
	if (!pid)
		child_sleeps();
	while (!is_sleeping(pid))
		syscall(SYS_sched_yield);
	kill(pid, SIGKILL);
	return 0;
}

/* The timer of the agent's for the first thread, which makes no other. */
static bool find_timer(siginfo_t *si)
{
	unsigned long long value;
	char line[128];
	FILE *in = fopen("/proc/self/timers", "r");

	*si = (siginfo_t){ .si_code = SI_TIMER };
	while (in && fgets(line, sizeof(line), in))
		if (sscanf(line, "signal: %d/%llx", &si->si_signo, &value) == 2)
			break;
	if (in)
		fclose(in);
	si->si_value.sival_ptr = (void *)(unsigned long)value;
	return si->si_signo;
}

static void *get_signals_of_others(void *arg)
{
	siginfo_t *si = arg;

	for (int i = 0; i < 100; i++) {
		syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), si->si_signo, si);
		usleep(1000);
	}
	return NULL;
}

/* others-signal: a thread gets the signal that the timer of another one sent. */
static int do_others_signal(char **arg)
{
	pthread_t thread;
	siginfo_t si;

	(void)arg;
	if (!find_timer(&si) || pthread_create(&thread, NULL, get_signals_of_others, &si))
		return 1;
	return pthread_join(thread, NULL);
}

static sem_t has_lock, give_it_back;

static int hold_lock(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)info, (void)size, (void)arg;
	sem_post(&has_lock);
	sem_wait(&give_it_back);
	return 1;
}

static void *hold_lock_in_thread(void *arg)
{
	(void)arg;
	dl_iterate_phdr(hold_lock, NULL);
	return NULL;
}

static pid_t fork_to(void (*end)(int))
{
	pid_t pid = fork();

	if (pid)
		return pid;
	alarm(20);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	end(3);
	return 0;
}

/* forks-locked: children end while a thread that they do not have holds the loader's lock. */
static int do_forks_locked(char **arg)
{
	void (*const ends[])(int) = { _exit, exit };
	pthread_t thread;
	int bad = 0;

	(void)arg;
	sem_init(&has_lock, 0, 0);
	sem_init(&give_it_back, 0, 0);
	if (pthread_create(&thread, NULL, hold_lock_in_thread, NULL))
		return 2;
	sem_wait(&has_lock);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		int status = 0;
		pid_t pid = fork_to(ends[i]);

		waitpid(pid, &status, 0);
		bad |= !WIFEXITED(status) || WEXITSTATUS(status) != 3;
	}
	sem_post(&give_it_back);
	pthread_join(thread, NULL);
	burn(0.1);
	return bad;
}
#endif

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
	/* With a mask, one that lets all signals in and one that lets none. */
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

/* @full can be read and @idle can't; both are small. */
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

/* selects: what is asked first whether it would wait returns what it would have. */
static int do_selects(char **arg)
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
		blocked_in_read,
		waiting_for_semaphore,
		busy_forever,
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

/* KiB of such a line in /proc/self/status. */
static long status_kib(const char *name)
{
	char line[128];
	long kib = -1;
	FILE *in = fopen("/proc/self/status", "r");

	while (in && fgets(line, sizeof(line), in))
		if (!strncmp(line, name, strlen(name)))
			kib = atol(line + strlen(name));
	if (in)
		fclose(in);
	return kib;
}

/* A filter of system calls that ends the process for getpid(). */
static void forbid_getpid(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = 4, .filter = code };

	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		_exit(4);
	/* Hooks that would ask who calls. */
	sigaction(SIGUSR2, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
}

static int after_vfork(char **arg, bool filter)
{
	double s = atof(arg[0]);
	pthread_t thread;
	pid_t pid = vfork();
	int status;

	if (!pid) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		if (filter)
			forbid_getpid();
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
	return pthread_create(&thread, NULL, thread_work, &s) || pthread_join(thread, NULL);
}

/* vfork-rights SECONDS: a child of vfork() gives up its rights; then a thread works. */
static int do_vfork_rights(char **arg)
{
	return after_vfork(arg, false);
}

/* vfork-filter SECONDS: it installs a filter, too. */
static int do_vfork_filter(char **arg)
{
	return after_vfork(arg, true);
}

/* root FOLDER: gives up new privileges, as sandboxes do, and executes a shell with that root. */
static int do_root(char **arg)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || chroot(arg[0]) || chdir("/"))
		return 1;
	execl("/bin/sh", "sh", "-c", "echo \"$LD_PRELOAD\"", NULL);
	return 2;
}

/* locks SECONDS: locks its memory, and works, in a thread too and in a child. */
static int do_locks(char **arg)
{
	double s = atof(arg[0]);
	pthread_t thread;
	pid_t pid;

	if (mlockall(MCL_CURRENT))
		return 4;
	printf("%ld KiB locked\n", status_kib("VmLck:"));
	fflush(stdout);
	burn(s);
	if (pthread_create(&thread, NULL, thread_work, &s) || pthread_join(thread, NULL))
		return 1;
	pid = fork();
	if (!pid) {
		child_work(s);
		_exit(0);
	}
	return waitpid(pid, NULL, 0) != pid;
}

/* tiny-altstack SECONDS: works with an alternate stack that hardly has room for the kernel. */
static int do_tiny_altstack(char **arg)
{
	size_t page = sysconf(_SC_PAGESIZE), size = sysconf(_SC_MINSIGSTKSZ);
	char *below = mmap(NULL, page + size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = { .ss_sp = below + page, .ss_size = size };

	if (below == MAP_FAILED || mprotect(below + page, size, PROT_READ | PROT_WRITE) ||
	    sigaltstack(&stack, NULL))
		return 1;
	burn(atof(arg[0]));
	return 0;
}

/* altstack: blocked in a handler on an alternate stack, for trace. */
static int do_altstack(char **arg)
{
	stack_t ss = { .ss_sp = malloc(65536), .ss_size = 65536 };
	struct sigaction sa = { .sa_handler = in_handler, .sa_flags = SA_ONSTACK };

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

#if defined(__x86_64__) || defined(__aarch64__)
/*
 * Calls itself @n times and then @work. No unwind information tells of it, so each of its
 * frames is a guess, and a sample of all of them takes longer than many periods.
 */
void undescribed(int n, void (*work)(void)) __asm__("undescribed");
__asm__(".text\n"
	".type undescribed, %function\n"
	"undescribed:\n"
#ifdef __x86_64__
	"	push %rbx\n"
	"	sub $48, %rsp\n"
	"	mov %rsi, %rbx\n"
	"	dec %edi\n"
	"	jle 1f\n"
	"	call undescribed\n"
	"	jmp 2f\n"
	"1:	call *%rbx\n"
	"2:	add $48, %rsp\n"
	"	pop %rbx\n"
	"	ret\n"
#else
	"	stp x19, x30, [sp, -64]!\n"
	"	mov x19, x1\n"
	"	subs w0, w0, 1\n"
	"	b.le 1f\n"
	"	bl undescribed\n"
	"	b 2f\n"
	"1:	blr x19\n"
	"2:	ldp x19, x30, [sp], 64\n"
	"	ret\n"
#endif
	".size undescribed, . - undescribed\n");

/* The same work however long it takes. */
static NOINLINE void fixed_work(void)
{
	volatile unsigned int x = 0;

	for (unsigned int i = 0; i < 30000000; i++)
		x += i;
}

/* undescribed DEPTH: works below so many frames that can only be guessed at. */
static int do_undescribed(char **arg)
{
	double start = clock_s(CLOCK_THREAD_CPUTIME_ID);

	undescribed(atoi(arg[0]), fixed_work);
	tell("undescribed", clock_s(CLOCK_THREAD_CPUTIME_ID) - start);
	return 0;
}
#endif

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

/* Its own clock reads the counter, so this counts. */
static NOINLINE void burn_without_tsc(double s)
{
	struct rusage usage;
	volatile double x = 1;

	do {
		for (int i = 0; i < 20000; i++)
			x = x * 1.0000001;
		getrusage(RUSAGE_SELF, &usage);
	} while (usage.ru_utime.tv_sec + 1e-6 * usage.ru_utime.tv_usec < s);
}

/* Asks to be traced, works and sleeps, and executes a program. */
static void be_traced(double s)
{
	struct timespec moment = { 0, 5000000 };

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(1);
	raise(SIGUSR1);
	burn(s);
	for (int i = 0; i < 20; i++)
		nanosleep(&moment, NULL);
	execl("/proc/self/exe", "target", "burn", "0.1", NULL);
	_exit(2);
}

/* tracer SECONDS: traces a child; tells if it sees a signal that is none of the child's. */
static int do_tracer(char **arg)
{
	int status, stops = 0;
	pid_t pid = fork();

	if (!pid)
		be_traced(atof(arg[0]));
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		int signo = WSTOPSIG(status);

		if (signo != SIGUSR1 && signo != SIGTRAP) {
			fprintf(stderr, "target: signal %d\n", signo);
			kill(pid, SIGKILL);
			return 1;
		}
		stops++;
		ptrace(PTRACE_CONT, pid, NULL, NULL);
	}
	return stops == 2 && WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : 1;
}

static void note_mask(void *arg)
{
	sigset_t *mask = arg;

	pthread_sigmask(SIG_BLOCK, NULL, mask);
}

static void *wait_for_cancellation(void *arg)
{
	pthread_cleanup_push(note_mask, arg);
	sleep(100);
	pthread_cleanup_pop(0);
	return NULL;
}

/* cancelled: what a thread that is cancelled while it waits sees of its mask: nothing blocked. */
static int do_cancelled(char **arg)
{
	struct timespec moment = { 0, 50000000 };
	sigset_t mask;
	pthread_t thread;
	int blocked = 0;

	(void)arg;
	sigfillset(&mask);
	if (pthread_create(&thread, NULL, wait_for_cancellation, &mask))
		return 2;
	nanosleep(&moment, NULL);
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	/* Not those that libc keeps to itself. */
	for (int i = 1; i <= SIGRTMAX; i++)
		blocked += (i < 32 || i >= SIGRTMIN) && sigismember(&mask, i) == 1;
	return blocked;
}

/* no-tsc SECONDS: forbids itself the time stamp counter. */
static int do_no_tsc(char **arg)
{
	void *p;

#ifdef PR_SET_TSC
	if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0))
		return 1;
#endif
	p = malloc(1000);
	burn_without_tsc(atof(arg[0]));
	free(p);
#ifdef PR_SET_TSC
	prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0);
#endif
	return !p;
}

/* smallstack SECONDS: signals come on an alternate stack of 8 KiB. */
static int do_smallstack(char **arg)
{
	char *p = mmap(NULL, 4 * 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t ss = { .ss_sp = p + 8192, .ss_size = 8192 };

	if (mprotect(ss.ss_sp, ss.ss_size, PROT_READ | PROT_WRITE) || sigaltstack(&ss, NULL))
		return 1;
	burn(atof(arg[0]));
	return 0;
}

static NOINLINE void sandboxed_work(double s)
{
	BURN(s);
}

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
		SYS_rt_sigreturn,    SYS_exit_group, SYS_exit,		 SYS_clock_gettime,
		SYS_futex,	     SYS_write,	     SYS_mmap,		 SYS_munmap,
		SYS_mprotect,	     SYS_madvise,    SYS_clone3,	 SYS_clone,
		SYS_set_robust_list, SYS_rseq,	     SYS_rt_sigprocmask, SYS_brk,
		SYS_restart_syscall, SYS_getrandom,  SYS_rt_sigaction,
	};
	enum { N = sizeof(allowed) / sizeof(allowed[0]) };
	struct sock_filter code[N + 3];
	struct sock_fprog prog = { .len = N + 3, .filter = code };
	pthread_t thread;

	code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);
	for (int i = 0; i < N; i++)
		code[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i],
							   N - i, 0);
	code[N + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	code[N + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog))
		return 4;
	sandboxed_work(atof(arg[0]));
	if (pthread_create(&thread, NULL, sandboxed_thread, arg[0]))
		return 5;
	pthread_join(thread, NULL);
	return 17;
}

/* traced SECONDS: as programs do that want no debugger, then signals and exec. */
static int do_traced(char **arg)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		return 1;
	signal(SIGUSR1, plain_handler);
	raise(SIGUSR1);
	burn(atof(arg[0]));
	execl("/proc/self/exe", "target", "exit", "7", NULL);
	return 2;
}

static double limited_work(double s)
{
	BURN(s);
	return s;
}

/* limit SECONDS: allows itself 256 MiB of addresses, takes half of them, and a thread. */
static void *limited_thread(void *arg)
{
	limited_work(atof(arg));
	return NULL;
}

static int do_limit(char **arg)
{
	struct rlimit limit = { 256 << 20, 256 << 20 };
	pthread_t thread;

	if (setrlimit(RLIMIT_AS, &limit) || !malloc(128 << 20))
		return 1;
	if (pthread_create(&thread, NULL, limited_thread, arg[0]))
		return 2;
	return pthread_join(thread, NULL);
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
	{ "share", 1, do_share },
	{ "burn", 1, do_burn },
	{ "threads", 3, do_threads },
	{ "fork", 2, do_fork },
	{ "crowd", 2, do_crowd },
	{ "masked", 1, do_masked },
	{ "held", 1, do_held },
	{ "crash", 1, do_crash },
	{ "kill", 1, do_kill },
	{ "quick-exit", 2, do_quick_exit },
	{ "forever", 0, do_forever },
	{ "forever-below", 1, do_forever_below },
	{ "sleeper", 1, do_sleeper },
	{ "handler", 1, do_handler },
	{ "masks", 0, do_masks },
	{ "guarded", 1, do_guarded },
	{ "soon", 0, do_soon },
#if defined(__x86_64__)
	{ "unaligned", 1, do_unaligned },
#endif
	{ "sigprof", 1, do_sigprof },
	{ "signals", 0, do_signals },
	{ "by-number", 0, do_by_number },
	{ "uses", 2, do_uses },
	{ "raw", 1, do_raw },
	{ "exec", 1, do_exec },
	{ "after-exec", 1, do_after_exec },
	{ "spawn", 2, do_spawn },
	{ "daemon", 1, do_daemon },
	{ "sleeps", 0, do_sleeps },
	{ "selects", 0, do_selects },
	{ "stacks", 0, do_stacks },
	{ "waits", 0, do_waits },
	{ "altstack", 0, do_altstack },
	{ "tiny-altstack", 1, do_tiny_altstack },
	{ "locks", 1, do_locks },
	{ "vfork-rights", 1, do_vfork_rights },
	{ "vfork-filter", 1, do_vfork_filter },
	{ "sandbox", 1, do_sandbox },
	{ "root", 1, do_root },
	{ "smallstack", 1, do_smallstack },
	{ "no-tsc", 1, do_no_tsc },
	{ "tracer", 1, do_tracer },
	{ "cancelled", 0, do_cancelled },
	{ "traced", 1, do_traced },
	{ "limit", 1, do_limit },
	{ "scribble", 1, do_scribble },
	{ "deep", 1, do_deep },
#if defined(__x86_64__) || defined(__aarch64__)
	{ "undescribed", 1, do_undescribed },
#endif
	{ "exit", 1, do_exit },
#ifndef STATIC
	{ "plugins", 0, do_plugins },
	{ "late", 0, do_late },
	{ "forks-locked", 0, do_forks_locked },
	{ "raw-fork", 0, do_raw_fork },
	{ "others-signal", 0, do_others_signal },
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
