// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * target.c - a program of known behaviour for the record and trace tests. The first argument says
 * what it does, and functions are named after what they do. CPU time is measured by the thread's
 * own clock, so a busy machine only changes how long it takes. The program tells the test how much
 * CPU time each function really used, and the test compares the profile with that.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "target.h"

double clock_s(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* Descriptor of a file that the test may have opened for lines "FUNCTION SECONDS". */
#define TRUTH_FD 99

void tell(const char *function, double s)
{
	char line[80];
	int n = snprintf(line, sizeof(line), "%s %.6f\n", function, s);

	/* The test may not have opened it. */
	if (write(TRUTH_FD, line, n) != n)
		errno = 0;
}

/* One function a line; they only differ by their names. */
/* clang-format off */
NOINLINE void burn(double s) { BURN(s); }
static NOINLINE void work_seventy(double s) { BURN(s); }
static NOINLINE void work_thirty(double s) { BURN(s); }
NOINLINE void child_work(double s) { BURN(s); }
static NOINLINE void masked_work(double s) { BURN(s); }
NOINLINE void after_exec_work(double s) { BURN(s); }
/* clang-format on */

/* share SECONDS: works 70 % in one function, 30 % in another. */
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

NOINLINE void *thread_work(void *arg)
{
	BURN(*(double *)arg);
	return NULL;
}

/* threads NUMBER AT-ONCE SECONDS: works in this many threads. */
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

static NOINLINE void *thread_calls(void *arg)
{
	double start = clock_s(CLOCK_THREAD_CPUTIME_ID), used;

	do {
		for (int i = 0; i < 50; i++)
			syscall(SYS_getppid);
		used = clock_s(CLOCK_THREAD_CPUTIME_ID) - start;
	} while (used < *(double *)arg);
	tell(__func__, used);
	return NULL;
}

/* calls NUMBER SECONDS: makes system calls in this many threads, one after the other. */
static int do_calls(char **arg)
{
	double s = atof(arg[1]);

	for (int i = atoi(arg[0]); i; i--) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, thread_calls, &s))
			return 1;
		pthread_join(thread, NULL);
	}
	return 0;
}

static pthread_barrier_t barrier;

static NOINLINE void *at_barrier(void *arg)
{
	pthread_barrier_wait(&barrier);
	return arg;
}

/* crowd NUMBER SECONDS: this many threads wait for the first one, which works. */
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

/* fork NUMBER SECONDS: children work without execve(). */
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

/* masked SECONDS: a thread works that blocks every signal, as the threads of xz do. */
static void *masked_thread(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	masked_work(atof(arg));
	return NULL;
}

/* held SECONDS: no signal gets in for this long, whatever libc is told. */
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

/* crash SECONDS, kill SECONDS, abort SECONDS: works, then is ended by a signal. */
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

/* forever: works until a signal ends it. */
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

/* forever-below DEPTH: the same, with this many more frames in each sample. */
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

/* sleeper SECONDS: one thread sleeps, the other one works until it wakes up. */
static int do_sleeper(char **arg)
{
	double start = clock_s(CLOCK_MONOTONIC), end = start + atof(arg[0]);
	pthread_t thread;

	pthread_create(&thread, NULL, sleeping_thread, arg[0]);
	do
		burn(0.01);
	while (clock_s(CLOCK_MONOTONIC) < end);
	tell("awake", clock_s(CLOCK_MONOTONIC) - start);
	return pthread_join(thread, NULL);
}

/* Waits for some ms below a stack that is larger than what is copied of it at first. */
static NOINLINE void sleep_below(void)
{
	const struct timespec ts = { .tv_nsec = 5000000 };
	volatile char large[60000];

	for (size_t i = 0; i < sizeof(large); i += 1024)
		large[i] = 0;
	nanosleep(&ts, NULL);
	large[1] = 0;
}

static pthread_rwlock_t births_go_on = PTHREAD_RWLOCK_INITIALIZER;
static _Atomic uint64_t slept_us;

static NOINLINE void *born_sleeper(void *unused)
{
	const double start = clock_s(CLOCK_MONOTONIC);

	pthread_rwlock_rdlock(&births_go_on);
	pthread_rwlock_unlock(&births_go_on);
	slept_us += (uint64_t)((clock_s(CLOCK_MONOTONIC) - start) * 1e6);
	return unused;
}

/*
 * births ROUNDS THREADS: in each round this thread sleeps below a large stack, which has the recorder
 * copy larger pieces at some time; then, with the recorder stopped, it begins so many threads, which
 * wait until the last round is over. So the recorder changes how it samples before it knows of some.
 */
static int do_births(char **arg)
{
	const int rounds = atoi(arg[0]), each = atoi(arg[1]);
	pthread_t *threads = calloc(rounds * each, sizeof(*threads));

	if (!threads || pthread_rwlock_wrlock(&births_go_on))
		return 1;
	for (int i = 0; i < rounds * each; i++) {
		if (i % each == 0) {
			usleep(20000);
			sleep_below();
			usleep(7000 * (i / each));
			kill(getppid(), SIGSTOP);
		}
		if (pthread_create(&threads[i], NULL, born_sleeper, NULL))
			return 1;
		if (i % each == each - 1) {
			usleep(10000);
			kill(getppid(), SIGCONT);
		}
	}
	usleep(300000);
	pthread_rwlock_unlock(&births_go_on);
	for (int i = 0; i < rounds * each; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	tell("slept", slept_us / 1e6);
	return 0;
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
	{ "calls", 2, do_calls },
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
	{ "births", 2, do_births },
	{ "handler", 1, do_handler },
	{ "masks", 0, do_masks },
	{ "mask", 0, do_mask },
	{ "ignored", 0, do_ignored },
	{ "pending", 0, do_pending },
	{ "interrupts", 0, do_interrupts },
	{ "changes", 0, do_changes },
	{ "old-calls", 1, do_old_calls },
	{ "beside-shell", 1, do_beside_shell },
	{ "changes-beside-shell", 1, do_changes_beside_shell },
	{ "spawns-together", 1, do_spawns_together },
	{ "hands-on", 3, do_hands_on },
	{ "small-hands-on", 3, do_small_hands_on },
	{ "sandbox-hands-on", 5, do_sandbox_hands_on },
	{ "small-handler", 1, do_small_handler },
	{ "small-foreign", 2, do_small_foreign },
	{ "masked-hands-on", 4, do_masked_hands_on },
	{ "small-shell", 0, do_small_shell },
	{ "leaves-shell", 2, do_leaves_shell },
	{ "spawns", 1, do_spawns },
	{ "guarded", 1, do_guarded },
	{ "soon", 1, do_soon },
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
	{ "no-room", 1, do_no_room },
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
	{ "vfork-exec-filter", 1, do_vfork_exec_filter },
	{ "bad-filter", 1, do_bad_filter },
	{ "no-filter", 1, do_no_filter },
	{ "sandbox", 1, do_sandbox },
	{ "root", 2, do_root },
	{ "smallstack", 1, do_smallstack },
	{ "no-tsc", 1, do_no_tsc },
	{ "dispatches", 1, do_dispatches },
	{ "dispatched-before", 2, do_dispatched_before },
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
