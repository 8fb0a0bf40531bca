// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * signal.c - signals: plain and SA_SIGINFO handlers, nested handlers, handlers on an alternate
 * stack, a handler of a fault that moves the pc on, interrupted system calls, and a handler that
 * leaves the interrupted stack by siglongjmp().
 */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

static volatile int count;
static sigjmp_buf out;
static char other[65536];

static void plain(int sig)
{
	(void)sig;
	count++;
}

static void nesting(int sig, siginfo_t *info, void *uc)
{
	(void)info;
	(void)uc;
	count++;
	if (sig == SIGUSR1)
		raise(SIGUSR2);
	if (sig == SIGUSR2)
		raise(SIGHUP);
}

static void fault(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)sig;
	(void)info;
	count++;
	/* The load below is three bytes long: mov (%rdi),%rax. */
	uc->uc_mcontext.gregs[REG_RIP] += 3;
}

static void leave(int sig)
{
	count++;
	siglongjmp(out, sig);
}

static void set(int sig, void (*handler)(int), int flags)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = flags };

	sigaction(sig, &sa, NULL);
}

static void set_info(int sig, void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = flags | SA_SIGINFO };

	sigaction(sig, &sa, NULL);
}

__attribute__((noinline)) static void touch(void *p)
{
	__asm__ volatile("mov (%%rdi),%%rax" : : "D"(p) : "rax", "memory");
}

__attribute__((noinline)) static int deeper(int n, int sig)
{
	volatile char room[40] = { 0 };

	if (n == 0)
		raise(sig);
	else
		room[1] = deeper(n - 1, sig);
	return room[1] + 1;
}

int main(void)
{
	stack_t ss = { .ss_sp = other, .ss_size = sizeof(other) };
	struct itimerval soon = { .it_value.tv_usec = 1000 };
	void *hole = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigset_t mask, old;

	set(SIGHUP, plain, 0);
	raise(SIGHUP);
	set_info(SIGUSR1, nesting, 0);
	set_info(SIGUSR2, nesting, 0);
	deeper(2, SIGUSR1);
	sigaltstack(&ss, NULL);
	set_info(SIGUSR1, nesting, SA_ONSTACK);
	set_info(SIGUSR2, nesting, SA_ONSTACK);
	deeper(2, SIGUSR1);
	set_info(SIGSEGV, fault, SA_ONSTACK);
	touch(hole);
	set_info(SIGSEGV, fault, 0);
	touch(hole);
	set(SIGTERM, leave, SA_ONSTACK);
	if (!sigsetjmp(out, 1))
		deeper(3, SIGTERM);
	set(SIGTERM, leave, 0);
	if (!sigsetjmp(out, 1))
		deeper(3, SIGTERM);
	/* A signal interrupts a system call. */
	set(SIGALRM, plain, 0);
	sigemptyset(&mask);
	sigaddset(&mask, SIGALRM);
	sigprocmask(SIG_BLOCK, &mask, &old);
	setitimer(ITIMER_REAL, &soon, NULL);
	sigsuspend(&old);
	printf("%d\n", count);
	return count != 12;
}
