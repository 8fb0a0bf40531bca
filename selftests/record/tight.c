// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tight.c - computes on a stack of SIZE bytes, of which it uses USE. Nothing is mapped behind the
 * end of the stack: with a byte too much, the program dies.
 *
 *	tight HOW SIZE USE SECONDS
 *
 *  HOW:
 *	thread		the stack of a thread, made by libc
 *	provided	the stack of a thread, made by the program
 *	disabled	the same, and the thread says that it has no alternate stack, as a runtime does
 *			that takes its own away
 *	handler		an alternate stack, in a handler
 *	left		an alternate stack, in a handler that is left by a jump; the function after
 *			the jump computes
 *	unused		an alternate stack that no handler uses
 *	late		the same, but it computes for as long before it has that stack
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define GUARD 65536
#define NOINLINE __attribute__((noinline, noclone))

static size_t size, use;
static double seconds;
static bool disables;
static sigjmp_buf behind;

static double cpu_time(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec + 1e-9 * ts.tv_nsec;
}

static NOINLINE void tight_work(void)
{
	double until = cpu_time() + seconds;
	volatile double x = 1;

	while (cpu_time() < until)
		for (int i = 0; i < 20000; i++)
			x = x * 1.0000001;
}

/* Touches the lowest byte that it uses, and all pages above it. */
static NOINLINE int fill(void)
{
	volatile char *p = __builtin_alloca(use);

	for (size_t at = use; at > 0; at -= at < 256 ? at : 256)
		p[at - 1] = 1;
	p[0] = 1;
	tight_work();
	return p[0];
}

static void *thread(void *arg)
{
	static const stack_t none = { .ss_flags = SS_DISABLE };

	if (disables)
		sigaltstack(&none, NULL);
	fill();
	return arg;
}

static void on_signal(int signo)
{
	(void)signo;
	fill();
}

static void leave(int signo)
{
	(void)signo;
	siglongjmp(behind, 1);
}

/* Returns @size bytes with nothing mapped below. */
static void *make_stack(void)
{
	char *p = mmap(NULL, GUARD + size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + GUARD, size, PROT_READ | PROT_WRITE))
		exit(2);
	return p + GUARD;
}

static int run_thread(void *stack)
{
	pthread_attr_t attr;
	pthread_t id;

	pthread_attr_init(&attr);
	if (stack ? pthread_attr_setstack(&attr, stack, size) :
		    pthread_attr_setstacksize(&attr, size))
		return 2;
	if (pthread_create(&id, &attr, thread, NULL) || pthread_join(id, NULL))
		return 2;
	return 0;
}

static int set_stack(void)
{
	stack_t stack = { .ss_sp = make_stack(), .ss_size = size };

	return sigaltstack(&stack, NULL) ? 2 : 0;
}

static int run_handler(void (*handler)(int signo))
{
	struct sigaction act = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
	sigset_t none;

	if (set_stack() || sigaction(SIGUSR1, &act, NULL))
		return 2;
	if (!sigsetjmp(behind, 0))
		return raise(SIGUSR1);
	/* The mask is still the one of the handler. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	tight_work();
	return 0;
}

static int run_unused(void)
{
	if (set_stack())
		return 2;
	tight_work();
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	size = atol(argv[2]);
	use = atol(argv[3]);
	seconds = atof(argv[4]);
	if (!strcmp(argv[1], "thread"))
		return run_thread(NULL);
	disables = !strcmp(argv[1], "disabled");
	if (disables || !strcmp(argv[1], "provided"))
		return run_thread(make_stack());
	if (!strcmp(argv[1], "handler"))
		return run_handler(on_signal);
	if (!strcmp(argv[1], "left"))
		return run_handler(leave);
	if (!strcmp(argv[1], "late"))
		tight_work();
	return run_unused();
}
