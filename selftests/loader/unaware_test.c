// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * unaware_test.c - what programs that know nothing of shadow stacks do to their stacks. It is run
 * by `shstk run`: with the argument "on" it fails unless shadow stacks are enabled; without an
 * argument it tests itself.
 *
 * It uses nothing but libc and is compiled without any protection option; a violation ends it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <ucontext.h>
#define HAVE_UCONTEXT 1
#endif

#include "../../tools/inject/preload/ssp.h"

static unsigned int count;

static void ok(int good, const char *what)
{
	printf("%sok %u %s\n", good ? "" : "not ", ++count, what);
	fflush(stdout);
}

/* ---- setjmp ---- */

static jmp_buf env;
static sigjmp_buf sigenv;

static __attribute__((noinline)) void deep(unsigned int n, void (*end)(void))
{
	if (n)
		deep(n - 1, end);
	else
		end();
	__asm__ volatile("" : : : "memory");
}

#ifdef __GLIBC__
/* longjmp() in programs compiled with -D_FORTIFY_SOURCE. */
void __longjmp_chk(jmp_buf buf, int value) __attribute__((noreturn));
#else
#define __longjmp_chk longjmp
#endif

static void jump_back(void)
{
	__longjmp_chk(env, 5);
}

static void underscore_back(void)
{
	_longjmp(env, 0);
}

static __attribute__((noinline)) int jumps(unsigned int depth)
{
	volatile int before = 42;
	int v = setjmp(env);

	if (!v)
		deep(depth, jump_back);
	return v == 5 && before == 42;
}

static void test_setjmp(void)
{
	int good = 1, v;

	for (int i = 0; i < 100; i++)
		good &= jumps((unsigned int)i);
	ok(good, "longjmp over 0 to 99 frames");
	ok(jumps(1000), "longjmp over 1000 frames");
	v = _setjmp(env);
	if (!v)
		deep(3, underscore_back);
	ok(v == 1, "_longjmp with 0 makes _setjmp return 1");
}

static void on_usr1(int sig)
{
	(void)sig;
	siglongjmp(sigenv, 7);
}

static void raise_usr1(void)
{
	raise(SIGUSR1);
}

static int blocked(int sig)
{
	sigset_t set;

	sigprocmask(SIG_BLOCK, NULL, &set);
	return sigismember(&set, sig);
}

static void test_siglongjmp(int flags, const char *what)
{
	struct sigaction a = { .sa_handler = on_usr1, .sa_flags = flags };
	static char space[65536];
	stack_t alt = { .ss_sp = space, .ss_size = sizeof(space) };
	volatile int good = 1;

	sigaltstack(&alt, NULL);
	sigaction(SIGUSR1, &a, NULL);
	for (volatile int i = 0; i < 20; i++) {
		int v = sigsetjmp(sigenv, 1);

		if (!v)
			deep(4, raise_usr1);
		good &= v == 7 && !blocked(SIGUSR1);
	}
	ok(good, what);
}

/* ---- SIGSEGV handlers ---- */

static volatile int *volatile nowhere = (int *)16;
static volatile sig_atomic_t faults;
static void *fault_addr;

static void on_segv(int sig, siginfo_t *info, void *uc)
{
	(void)sig;
	(void)uc;
	faults++;
	fault_addr = info->si_addr;
	siglongjmp(sigenv, 1);
}

static void on_segv_plain(int sig)
{
	faults++;
	if (sig == SIGSEGV)
		siglongjmp(sigenv, 1);
}

static void touch_nowhere(void)
{
	*nowhere = 1;
}

static void test_segv_handler(void)
{
	struct sigaction a = { .sa_sigaction = on_segv, .sa_flags = SA_SIGINFO }, old;
	void (*was)(int);

	sigaction(SIGSEGV, &a, &old);
	ok(old.sa_handler == SIG_DFL, "SIGSEGV handler is the default at first");
	for (volatile int i = 0; i < 5; i++)
		if (!sigsetjmp(sigenv, 1))
			deep(2, touch_nowhere);
	ok(faults == 5 && fault_addr == (void *)16,
	   "own SIGSEGV handler sees every fault and its address");
	sigaction(SIGSEGV, NULL, &old);
	ok(old.sa_sigaction == on_segv && old.sa_flags & SA_SIGINFO,
	   "sigaction() tells the program's own handler");
	was = signal(SIGSEGV, on_segv_plain);
	ok(was == (void (*)(int))(uintptr_t)on_segv, "signal() returns the handler before");
	if (!sigsetjmp(sigenv, 1))
		touch_nowhere();
	ok(faults == 6, "handler set by signal() is called");
	ok(signal(SIGSEGV, SIG_IGN) == on_segv_plain && !raise(SIGSEGV),
	   "an ignored SIGSEGV that is sent is ignored");
	signal(SIGSEGV, SIG_DFL);
	{
		int status;
		pid_t pid = fork();

		if (!pid)
			touch_nowhere();
		waitpid(pid, &status, 0);
		ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV,
		   "a fault without handler ends the process by SIGSEGV");
	}
}

/* ---- Dynamic linker ---- */

#ifndef STATIC
static void test_dl(void)
{
	int good = 1;

	for (int i = 0; i < 3; i++) {
		good &= !dlopen("libnosuch.so.99", RTLD_NOW) && dlerror();
		good &= !dlsym(RTLD_DEFAULT, "no_such_symbol") && dlerror();
	}
	ok(good, "failing dlopen() and dlsym()");
}
#endif

/* ---- Threads ---- */

static volatile int cleaned;

static void cleanup(void *arg)
{
	cleaned += (int)(intptr_t)arg;
}

static void leave(void)
{
	pthread_exit((void *)9);
}

static void *exiting(void *arg)
{
	pthread_cleanup_push(cleanup, (void *)1);
	deep(10, leave);
	pthread_cleanup_pop(0);
	return arg;
}

static void *waiting(void *arg)
{
	pthread_cleanup_push(cleanup, (void *)100);
	*(volatile int *)arg = 1;
	for (;;)
		pause();
	pthread_cleanup_pop(0);
	return NULL;
}

static void *returning(void *arg)
{
	return jumps(50) ? arg : NULL;
}

static void test_threads(void)
{
	volatile int up = 0;
	int good = 1;
	pthread_t t;
	void *ret;

	for (int i = 0; i < 20; i++) {
		good &= !pthread_create(&t, NULL, returning, &good);
		good &= !pthread_join(t, &ret) && ret == &good;
	}
	ok(good, "threads that longjmp and return");
	good = 1;
	for (int i = 0; i < 5; i++) {
		good &= !pthread_create(&t, NULL, exiting, NULL);
		good &= !pthread_join(t, &ret) && ret == (void *)9;
	}
	ok(good && cleaned == 5, "pthread_exit() in a deep frame, with cleanup");
	cleaned = 0;
	pthread_create(&t, NULL, waiting, (void *)&up);
	while (!up)
		usleep(1000);
	pthread_cancel(t);
	pthread_join(t, &ret);
	ok(ret == PTHREAD_CANCELED && cleaned == 100, "pthread_cancel(), with cleanup");
}

/* ---- Processes ---- */

static int wait_status(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static __attribute__((noinline)) int child_work(int n)
{
	return n > 0 ? child_work(n - 1) + 1 : 0;
}

static __attribute__((noinline)) pid_t spawn(const char *self, int code)
{
	char arg[16];
	pid_t pid;

	snprintf(arg, sizeof(arg), "%d", code);
	pid = vfork();
	if (!pid) {
		/* These calls write over the parent's entries. */
		child_work(20);
		execl(self, self, "exit", arg, (char *)NULL);
		_exit(99);
	}
	return pid;
}

static void test_processes(const char *self)
{
	char *argv[] = { (char *)self, "exit", "6", NULL };
	extern char **environ;
	int good = 1;
	pid_t pid;

	for (int i = 0; i < 5; i++)
		good &= wait_status(spawn(self, i)) == i;
	ok(good, "vfork(), calls in the child, exec");
	good = !posix_spawn(&pid, self, NULL, NULL, argv, environ) && wait_status(pid) == 6;
	ok(good, "posix_spawn()");
	ok(WEXITSTATUS(system("exit 4")) == 4, "system()");
	pid = fork();
	if (!pid)
		_exit(jumps(20) ? 3 : 4);
	ok(wait_status(pid) == 3, "fork(), longjmp in the child");
}

/* ---- ucontext ---- */

#ifdef HAVE_UCONTEXT
#define STACK 32768

/*
 * Whether shadow stacks of contexts are freed: the start-up object frees them; a glibc that handles
 * shadow stacks keeps them all.
 */
#if defined(__x86_64__) && !defined(STATIC) && !defined(LIBC_HANDLES)
#define FREES_THEM 1
#else
#define FREES_THEM 0
#endif

/* Whether longjmp() can switch stacks: glibc's on x86 stays on its shadow stack. */
#if defined(__x86_64__) && defined(LIBC_HANDLES)
#define HOPS 0
#else
#define HOPS 1
#endif

static ucontext_t here, there;
static volatile int steps;

static void generator(int a, int b, int c, int d, int e, int f, int g, int h)
{
	steps = a + b + c + d + e + f + g + h;
	for (int i = 0; i < 10; i++) {
		swapcontext(&there, &here);
		steps++;
	}
}

static void test_swapcontext(void)
{
	static char stack[STACK];

	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = sizeof(stack);
	there.uc_link = &here;
	makecontext(&there, (void (*)(void))generator, 8, 1, 2, 3, 4, 5, 6, 7, 8);
	for (int i = 0; i < 11; i++)
		swapcontext(&here, &there);
	ok(steps == 46, "swapcontext() to and fro, 8 arguments, uc_link");
}

static void yielder(void)
{
	for (;;) {
		steps++;
		swapcontext(&there, &here);
	}
}

static size_t count_shadow_stacks(void)
{
	char *line = NULL;
	size_t room = 0, n = 0;
	FILE *f = fopen("/proc/self/smaps", "r");

	while (f && getline(&line, &room, f) > 0)
		n += !strncmp(line, "VmFlags:", 8) && strstr(line, " ss");
	free(line);
	if (f)
		fclose(f);
	return n;
}

/* Tests contexts that are given up in the middle, on memory that is used again. */
static void test_abandoned(void)
{
	size_t before = count_shadow_stacks(), after;

	steps = 0;
	for (int i = 0; i < 200; i++) {
		char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				   -1, 0);

		getcontext(&there);
		there.uc_stack.ss_sp = stack;
		there.uc_stack.ss_size = STACK;
		there.uc_link = NULL;
		makecontext(&there, yielder, 0);
		swapcontext(&here, &there);
		swapcontext(&here, &there);
		munmap(stack, STACK);
	}
	after = count_shadow_stacks();
	ok(steps == 400 && (after <= before + 8 || !FREES_THEM),
	   "200 abandoned contexts leave few shadow stacks");
}

static uint64_t lowest, highest;

static void finisher(void)
{
	uint64_t depth = read_ssp() & 4095;

	steps++;
	lowest = depth < lowest ? depth : lowest;
	highest = depth > highest ? depth : highest;
}

static void test_finished(void)
{
	static char stacks[8][STACK];
	size_t before = count_shadow_stacks(), after;

	steps = 0;
	lowest = UINT64_MAX;
	highest = 0;
	for (int i = 0; i < 400; i++) {
		getcontext(&there);
		there.uc_stack.ss_sp = stacks[i % 8];
		there.uc_stack.ss_size = STACK;
		there.uc_link = &here;
		makecontext(&there, finisher, 0);
		swapcontext(&here, &there);
	}
	after = count_shadow_stacks();
	ok(steps == 400 && (after <= before + 8 || !FREES_THEM),
	   "400 finished contexts leave few shadow stacks");
	/* An entry that a context left there would be below the next one's first entry. */
	if (FREES_THEM)
		ok(lowest == highest, "and no entries on those that are used again");
}

static void throw_back(void)
{
	setcontext(&here);
}

static void test_setcontext(void)
{
	volatile int passes = 0;

	getcontext(&here);
	if (passes++ < 3)
		deep(30, throw_back);
	ok(passes == 4, "setcontext() out of deep frames");
}

static void on_usr2(int sig, siginfo_t *info, void *uc)
{
	static ucontext_t copy;

	(void)sig;
	(void)info;
	copy = *(ucontext_t *)uc;
	steps++;
	setcontext(&copy);
}

static void test_setcontext_signal(void)
{
	struct sigaction a = { .sa_sigaction = on_usr2, .sa_flags = SA_SIGINFO };

	sigaction(SIGUSR2, &a, NULL);
	steps = 0;
	for (volatile int i = 0; i < 3; i++)
		kill(getpid(), SIGUSR2);
	ok(steps == 3, "setcontext() to the context a handler got");
}

/* Coroutines that are entered by setcontext() and switched by longjmp(). */
static jmp_buf main_env, co_env;

static void hopper(void)
{
	for (;;) {
		steps++;
		if (!_setjmp(co_env))
			_longjmp(main_env, 1);
	}
}

static void test_hop(void)
{
	static char stack[STACK];
	volatile int i = 0;

	steps = 0;
	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = sizeof(stack);
	there.uc_link = NULL;
	makecontext(&there, hopper, 0);
	if (!_setjmp(main_env))
		setcontext(&there);
	while (i++ < 10)
		if (!_setjmp(main_env))
			_longjmp(co_env, 1);
	ok(steps == 11, "coroutines switched by longjmp between stacks");
}

static void *resumer(void *arg)
{
	swapcontext(&here, &there);
	return arg;
}

static void test_migration(void)
{
	static char stack[STACK];
	pthread_t t;
	void *ret = NULL;

	steps = 0;
	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = sizeof(stack);
	there.uc_link = NULL;
	makecontext(&there, yielder, 0);
	swapcontext(&here, &there);
	pthread_create(&t, NULL, resumer, stack);
	pthread_join(t, &ret);
	swapcontext(&here, &there);
	ok(steps == 3 && ret == stack, "a context that moves to another thread");
}
#endif

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "exit"))
		return atoi(argv[2]);
	printf("TAP version 13\n");
	if (argc == 2 && !strcmp(argv[1], "on"))
		ok(read_ssp() != 0, "shadow stack is on");
	test_setjmp();
	test_siglongjmp(0, "siglongjmp out of a handler");
	test_siglongjmp(SA_ONSTACK, "siglongjmp out of a handler on its own stack");
	test_segv_handler();
#ifndef STATIC
	test_dl();
#endif
	test_threads();
	test_processes("/proc/self/exe");
#ifdef HAVE_UCONTEXT
	test_swapcontext();
	test_abandoned();
	test_finished();
	test_setcontext();
	/* A program that uses glibc's own setcontext() does not survive this test. */
	if (FREES_THEM && argc == 2 && !strcmp(argv[1], "on"))
		test_setcontext_signal();
	if (HOPS)
		test_hop();
	test_migration();
#endif
	printf("1..%u\n", count);
	return 0;
}
