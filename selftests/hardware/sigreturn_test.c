// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sigreturn_test.c - a thread in the system call that ends a signal handler: its program
 * counter is behind all that describes the handler's return.
 *
 * No shadow stack is needed. A child is stopped by ptrace where it enters that call; what
 * it was doing when the signal came, it said itself.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "step.h"
#include "kselftest.h"

#define MAX 128

#ifdef __x86_64__
#define ARCH SHSTK_ARCH_X86
#else
#define ARCH SHSTK_ARCH_ARM64
#endif

/**
 * struct truth - what the child says
 * @pc: what the signal interrupted.
 * @caller: return address of the function that sent it.
 */
static struct truth {
	volatile uint64_t pc, caller;
} * truth;

static void on_signal(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *uc = context;

	(void)sig;
	(void)info;
#ifdef __x86_64__
	truth->pc = (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
#else
	truth->pc = uc->uc_mcontext.pc;
#endif
}

static __attribute__((noinline)) void send_signal(void)
{
	truth->caller = (uintptr_t)__builtin_return_address(0);
	raise(SIGUSR1);
	asm volatile("");
}

static void child(void)
{
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };

	sigaction(SIGUSR1, &sa, NULL);
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	for (;;)
		send_signal();
}

static bool is_sigreturn(pid_t pid)
{
	struct user_regs_struct u;
	struct iovec iov = { &u, sizeof(u) };

	if (ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &iov))
		return false;
#ifdef __x86_64__
	return u.orig_rax == SYS_rt_sigreturn;
#else
	return u.regs[8] == SYS_rt_sigreturn;
#endif
}

/* Until the child enters the system call. */
static bool go_there(pid_t pid)
{
	int status, sig = 0;

	while (!ptrace(PTRACE_SYSCALL, pid, 0, sig) && waitpid(pid, &status, 0) == pid &&
	       WIFSTOPPED(status)) {
		sig = WSTOPSIG(status);
		if (sig != (SIGTRAP | 0x80))
			continue;
		sig = 0;
		if (is_sigreturn(pid))
			return true;
	}
	return false;
}

static void look(pid_t pid)
{
	struct shstk_info info = { .size = sizeof(info) };
	uint8_t marks[MAX] = { 0 };
	struct shstk_opts opts = { .size = sizeof(opts), .marks = marks };
	struct shstk_space *space;
	struct shstk_regs regs;
	uint64_t pcs[MAX];
	bool caller = false;
	int n;

	if (shstk_space_create(ARCH, &space) || shstk_space_add_pid(space, pid) < 1 ||
	    step_regs(pid, &regs))
		ksft_exit_fail_msg("no space: %s\n", strerror(errno));
	n = shstk_unwind(space, &regs, shstk_read_process, &pid, pcs, MAX, &opts, &info);
	for (int i = 0; i < n; i++) {
		ksft_print_msg("%#llx\n", (unsigned long long)pcs[i]);
		caller |= i > 1 && pcs[i] == truth->caller;
	}
	ksft_test_result(n > 1 && pcs[1] == truth->pc && marks[1] & SHSTK_MARK_PC,
			 "behind the end of a handler comes what it interrupted\n");
	ksft_test_result(caller && info.end == SHSTK_END_COMPLETE && !info.guessed,
			 "and its callers, and nothing is guessed\n");
	shstk_space_destroy(space);
}

int main(void)
{
	int status;
	pid_t pid;

	ksft_print_header();
	ksft_set_plan(2);
	truth = mmap(NULL, sizeof(*truth), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	pid = fork();
	if (!pid)
		child();
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) ||
	    !go_there(pid))
		ksft_exit_fail_msg("the child did not come there\n");
	look(pid);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	ksft_finished();
}
