// SPDX-License-Identifier: GPL-2.0-or-later
/* catcher.c - what a program may do with libshstk-crash, and what it may do itself; see caught_test.py. */
#include <errno.h>
#include <pthread.h>
#include <shstk_crash.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static const char *command = "/nonexistent";
static int results[2];
static volatile sig_atomic_t children;

__attribute__((noinline)) static int careless(volatile int *pointer)
{
	return *pointer + 1;
}

static void *crash_here(void *arg)
{
	pthread_barrier_wait(arg);
	return (void *)(long)careless(NULL);
}

static void leave(int sig)
{
	_exit(sig);
}

/* Reports two times, and lets the program go on behind the instruction that failed. */
static void report(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	results[0] = shstk_crash_report(sig, info, uc);
	errno = 7;
	results[1] = shstk_crash_report(sig, info, uc);
	if (errno != 7)
		_exit(3);
	if (results[0])
		_exit(4);
	fflush(stdout);
	printf("reported %d, then %d, errno %d\n", results[0], results[1], errno);
	fflush(stdout);
	_exit(0);
}

static void install(void)
{
	static const char *const args[] = { "--json", NULL };
	struct shstk_crash_opts opts = {
		.size = 4, .command = command, .timeout = 150, .args = args
	};
	int wrong = shstk_crash_install(&opts);

	opts.size = sizeof(opts);
	printf("wrong size %d, ", wrong);
	printf("two times %d\n", shstk_crash_install(&opts) | shstk_crash_install(&opts));
	fflush(stdout);
}

static void use_command(void)
{
	struct shstk_crash_opts opts = { .size = sizeof(opts), .command = command, .timeout = 150 };

	if (shstk_crash_install(&opts))
		exit(5);
}

static void catch_segv(void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction act = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	sigaction(SIGSEGV, &act, NULL);
}

static void count_child(int sig)
{
	(void)sig;
	children++;
}

static int found;

/* Another thread waits for children all the time. */
static void *wait_for_any(void *arg)
{
	(void)arg;
	for (;;) {
		if (wait(NULL) > 0)
			found++;
		usleep(100);
	}
	return NULL;
}

static void report_and_count(int sig, siginfo_t *info, void *context)
{
	int ret = shstk_crash_report(sig, info, context);

	printf("reported %d, waits found %d, SIGCHLD %d\n", ret, found, (int)children);
	fflush(stdout);
	_exit(0);
}

/* Waits until the first thread has ended: it is a zombie then. */
static void *crash_later(void *arg)
{
	char state = 'R';

	while (state != 'Z') {
		FILE *in = fopen("/proc/self/stat", "r");

		if (!in || fscanf(in, "%*d (%*[^)]) %c", &state) != 1)
			_exit(7);
		fclose(in);
		usleep(1000);
	}
	return (void *)(long)careless(arg);
}

static void crash_without_first_thread(void)
{
	pthread_t thread;

	use_command();
	pthread_create(&thread, NULL, crash_later, NULL);
	pthread_exit(NULL);
}

static void crash_in_two_threads(void)
{
	pthread_barrier_t barrier;
	pthread_t threads[2];

	pthread_barrier_init(&barrier, NULL, 2);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, crash_here, &barrier);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";
	pthread_t thread;

	if (argc > 2)
		command = argv[2];
	if (!strcmp(way, "own")) {
		signal(SIGSEGV, leave);
		careless(NULL);
	} else if (!strcmp(way, "ignored")) {
		signal(SIGABRT, SIG_IGN);
		raise(SIGABRT);
		return 6;
	} else if (!strcmp(way, "report")) {
		use_command();
		catch_segv(report);
		careless(NULL);
	} else if (!strcmp(way, "install")) {
		install();
		careless(NULL);
	} else if (!strcmp(way, "waits")) {
		use_command();
		signal(SIGCHLD, count_child);
		pthread_create(&thread, NULL, wait_for_any, NULL);
		catch_segv(report_and_count);
		careless(NULL);
	} else if (!strcmp(way, "leaderless")) {
		crash_without_first_thread();
	} else if (!strcmp(way, "both")) {
		crash_in_two_threads();
	}
	return 1;
}
