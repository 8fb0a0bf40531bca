// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * stateless.c - a program whose thread allocates without a state of an interpreter. Prints how often the kernel
 * was asked meanwhile to copy memory.
 *
 * A filter of system calls counts that. It is of the thread alone, and installed by an instruction, so that nobody
 * who looks out for filters sees it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#define BLOCKS 1000

static volatile sig_atomic_t copies;

/* The system call fails as where it does not exist. */
static void count(int signo, siginfo_t *info, void *context)
{
	ucontext_t *c = context;

	(void)signo, (void)info;
	copies++;
	c->uc_mcontext.gregs[REG_RAX] = -ENOSYS;
}

static long control(long what, long first, const void *second)
{
	register long r10 __asm__("r10") = 0;
	register long r8 __asm__("r8") = 0;
	long ret = SYS_prctl;

	__asm__ volatile("syscall"
			 : "+a"(ret)
			 : "D"(what), "S"(first), "d"(second), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return ret;
}

static void *allocate(void *arg)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { sizeof(code) / sizeof(*code), code };

	if (control(PR_SET_NO_NEW_PRIVS, 1, NULL) ||
	    control(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		return NULL;
	for (int i = 0; i < BLOCKS; i++) {
		void *volatile p = malloc(32);

		free(p);
	}
	return arg;
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = count, .sa_flags = SA_SIGINFO };
	void *done = NULL;
	pthread_t thread;

	if (sigaction(SIGSYS, &sa, NULL) || pthread_create(&thread, NULL, allocate, &sa) ||
	    pthread_join(thread, &done))
		return 1;
	if (done)
		printf("%d copies for %d blocks\n", (int)copies, BLOCKS);
	else
		puts("there are no filters of system calls");
	return 0;
}
