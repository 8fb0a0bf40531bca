// SPDX-License-Identifier: GPL-2.0-or-later
/* target_stacks.c - stacks of the target that are small, deep, or without unwind information. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "target.h"

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

/*
 * tiny-altstack SECONDS: works with an alternate stack that hardly has room for the kernel's frame.
 */
int do_tiny_altstack(char **arg)
{
	size_t page = sysconf(_SC_PAGESIZE), size = sysconf(_SC_MINSIGSTKSZ), most = 4 * size;
	char *below = mmap(NULL, page + most, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = { .ss_sp = below + page, .ss_size = size };

	if (below == MAP_FAILED || mprotect(below + page, most, PROT_READ | PROT_WRITE))
		return 1;
	/* The kernel refuses less than 2 KiB, also where its frame needs less. */
	while (sigaltstack(&stack, NULL)) {
		stack.ss_size += 64;
		if (errno != ENOMEM || stack.ss_size > most)
			return 1;
	}
	burn(atof(arg[0]));
	return 0;
}

/* altstack: blocks in a handler on an alternate stack, for trace. */
int do_altstack(char **arg)
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

int do_deep(char **arg)
{
	return deep(atoi(arg[0]));
}

#if defined(__x86_64__) || defined(__aarch64__)
/*
 * Calls itself @n times and then @work. It has no unwind information, so each of its frames is a
 * guess, and a sample of all of them takes longer than many periods.
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

/* Does the same work, however long it takes. */
static NOINLINE void fixed_work(void)
{
	volatile unsigned int x = 0;

	for (unsigned int i = 0; i < 30000000; i++)
		x += i;
}

/* undescribed DEPTH: works below this many frames that can only be guessed. */
int do_undescribed(char **arg)
{
	double start = clock_s(CLOCK_THREAD_CPUTIME_ID);

	undescribed(atoi(arg[0]), fixed_work);
	tell("undescribed", clock_s(CLOCK_THREAD_CPUTIME_ID) - start);
	return 0;
}
#endif

/* smallstack SECONDS: works with an alternate stack of 8 KiB for signals. */
int do_smallstack(char **arg)
{
	char *p = mmap(NULL, 4 * 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t ss = { .ss_sp = p + 8192, .ss_size = 8192 };

	if (mprotect(ss.ss_sp, ss.ss_size, PROT_READ | PROT_WRITE) || sigaltstack(&ss, NULL))
		return 1;
	burn(atof(arg[0]));
	return 0;
}
