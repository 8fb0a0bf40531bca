// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * crash_ways.c - further ways for crasher.c: where the C library is between a function of the program
 * and the crash or between two functions of the program, where code is run that is none, on other
 * stacks, and at the beginning and the end of things. See crash_ways.h.
 */
#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "crash_ways.h"

#define FN __attribute__((noinline))
#define KEEP __asm__ volatile("" ::: "memory")
#define PAGE 65536 /* the largest page of these machines */

static char *volatile bad = (char *)16;
static volatile int value;
static char other_stack[256 << 10] __attribute__((aligned(4096)));

FN static void store(void)
{
	*bad = 1;
	KEEP;
}

/* ---- In the C library, called with what is wrong ---- */

FN static void length(void)
{
	value = (int)strlen(bad);
	KEEP;
}

FN static void copies(void)
{
	char here[64] = { 0 };

	memcpy(bad, here, sizeof(here));
	KEEP;
}

FN static void prints(void)
{
	char here[64];

	value = snprintf(here, sizeof(here), "%s", bad);
	KEEP;
}

FN static void asserts(void)
{
	assert(value);
	KEEP;
}

FN static void frees(void)
{
	bad = malloc(64);
	bad += 24;
	free(bad);
	KEEP;
}

FN static void quits(void)
{
	raise(SIGQUIT);
	KEEP;
}

/* ---- Called by the C library ---- */

FN static int compare(const void *a, const void *b)
{
	store();
	return *(const int *)a - *(const int *)b;
}

FN static void sorts(void)
{
	int numbers[] = { 3, 1, 2 };

	qsort(numbers, 3, sizeof(*numbers), compare);
	KEEP;
}

FN static void at_end(void)
{
	store();
}

FN static void ends(void)
{
	atexit(at_end);
	exit(0);
}

FN static void once(void)
{
	static pthread_once_t control = PTHREAD_ONCE_INIT;

	pthread_once(&control, store);
	KEEP;
}

static void on_thread_end(void *arg)
{
	(void)arg;
	store();
}

static void *has_key(void *arg)
{
	pthread_key_t key;

	if (pthread_key_create(&key, on_thread_end) || pthread_setspecific(key, other_stack))
		exit(77);
	return arg;
}

FN static void thread_ends(void)
{
	pthread_t t;

	pthread_create(&t, NULL, has_key, NULL);
	pthread_join(t, NULL);
}

/* ---- Code that is none ---- */

FN static void call(void *address)
{
	void (*volatile fn)(void) = (void (*)(void))(uintptr_t)address;

	fn();
	KEEP;
}

static void *new_page(void)
{
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		exit(77);
	return page;
}

FN static void runs_data(void)
{
	call(new_page());
	KEEP;
}

FN static void runs_no_more(void)
{
	void *page = new_page();

	munmap(page, PAGE);
	call(page);
	KEEP;
}

FN static void writes_code(void)
{
	*(volatile char *)(uintptr_t)store = 1;
	KEEP;
}

/* ---- Stacks ---- */

static void on_other_stack(int signo)
{
	(void)signo;
	store();
}

FN static void other_stack_handler(void)
{
	const stack_t stack = { .ss_sp = other_stack, .ss_size = sizeof(other_stack) };
	struct sigaction act = { .sa_handler = on_other_stack, .sa_flags = SA_ONSTACK };

	if (sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &act, NULL))
		exit(77);
	raise(SIGUSR1);
	KEEP;
}

static void raises(int signo)
{
	(void)signo;
	raise(SIGUSR1);
}

static void stores(int signo)
{
	(void)signo;
	store();
}

FN static void nested_handlers(void)
{
	signal(SIGUSR1, stores);
	signal(SIGUSR2, raises);
	raise(SIGUSR2);
	KEEP;
}

static ucontext_t here, there;

static void coroutine(void)
{
	store();
}

FN static void switches(void)
{
	getcontext(&there);
	there.uc_stack.ss_sp = other_stack;
	there.uc_stack.ss_size = sizeof(other_stack);
	there.uc_link = &here;
	makecontext(&there, coroutine, 0);
	swapcontext(&here, &there);
}

FN static void jumps_back(void)
{
	static jmp_buf back;

	if (!setjmp(back))
		longjmp(back, 1);
	store();
	KEEP;
}

/* ---- Other processes ---- */

FN static void forks(void)
{
	pid_t pid = fork();

	if (!pid)
		store();
	waitpid(pid, NULL, 0);
}

static const struct {
	const char *name;
	void (*crash)(void);
} ways[] = {
	{ "length", length },
	{ "copies", copies },
	{ "prints", prints },
	{ "asserts", asserts },
	{ "frees", frees },
	{ "quits", quits },
	{ "sorts", sorts },
	{ "ends", ends },
	{ "once", once },
	{ "thread-ends", thread_ends },
	{ "runs-data", runs_data },
	{ "runs-no-more", runs_no_more },
	{ "writes-code", writes_code },
	{ "other-stack", other_stack_handler },
	{ "nested", nested_handlers },
	{ "switches", switches },
	{ "jumps-back", jumps_back },
	{ "forks", forks },
};

bool crash_in_way(const char *name)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		if (strcmp(name, ways[i].name))
			continue;
		ways[i].crash();
		return true;
	}
	return false;
}
