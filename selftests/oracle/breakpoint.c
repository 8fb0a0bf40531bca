// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * breakpoint.c - run a thread up to an address.
 *
 * By a debug register where one works: there are machines (virtual ones mostly) where
 * debug registers can be written and nothing ever comes of it, so that is tried
 * first. Else by an INT3, which is in the code only while the thread runs: whoever
 * reads the code, when the thread has stopped, sees that of the program. Other threads
 * would run into it, so a thread that is not alone in its memory is stepped there.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "oracle.h"

#define INT3 0xcc

static enum breakpoints how = BREAK_HARDWARE;

static int poke_debug(pid_t tid, int reg, u64 value)
{
	return ptrace(PTRACE_POKEUSER, tid, offsetof(struct user, u_debugreg) + 8 * reg, value);
}

static bool set_debug(pid_t tid, u64 addr)
{
	return !poke_debug(tid, 7, 0) &&
	       (!addr || (!poke_debug(tid, 0, addr) && !poke_debug(tid, 7, 1)));
}

/* The function on which the probe sets its breakpoint. */
static __attribute__((noinline, noclone)) void stop_here(void)
{
	__asm__ volatile("");
}

static __attribute__((noreturn)) void probed(void)
{
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	stop_here();
	_exit(0);
}

/* Returns whether a breakpoint in a debug register stops anything on this machine. */
static bool hardware_works(void)
{
	bool works = false;
	int status;
	pid_t pid = fork();

	if (!pid)
		probed();
	if (pid < 0)
		return false;
	if (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status) &&
	    set_debug(pid, (uintptr_t)stop_here) && !ptrace(PTRACE_CONT, pid, 0, 0) &&
	    waitpid(pid, &status, 0) == pid)
		works = WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP;
	if (!WIFEXITED(status)) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	return works;
}

void breakpoint_choose(enum breakpoints wanted)
{
	how = wanted == BREAK_BEST ? hardware_works() ? BREAK_HARDWARE : BREAK_INT3 : wanted;
	printf("# breakpoints: %s\n", how == BREAK_HARDWARE ? "debug registers" :
				      how == BREAK_INT3	    ? "INT3" :
							      "by stepping");
}

bool breakpoint_is_cheap(bool alone)
{
	return how == BREAK_HARDWARE || (how == BREAK_INT3 && alone);
}

static u64 word_of(u64 addr)
{
	return addr & ~7ul;
}

static bool plant(struct breakpoint *b, pid_t tid)
{
	unsigned int shift = b->addr % 8 * 8;
	long word;

	errno = 0;
	word = ptrace(PTRACE_PEEKTEXT, tid, word_of(b->addr), 0);
	if (errno)
		return false;
	b->word = word;
	if (ptrace(PTRACE_POKETEXT, tid, word_of(b->addr),
		   (b->word & ~(0xfful << shift)) | (u64)INT3 << shift))
		return false;
	b->planted = b->addr;
	return true;
}

bool breakpoint_set(struct breakpoint *b, pid_t tid, u64 addr)
{
	if (b->addr == addr)
		return true;
	b->addr = 0;
	if (how == BREAK_HARDWARE && !set_debug(tid, addr))
		return false;
	b->addr = addr;
	return true;
}

void breakpoint_child(const struct breakpoint *parent, pid_t tid)
{
	/* Takes away the breakpoint that the child has inherited. */
	if (how == BREAK_HARDWARE)
		set_debug(tid, 0);
	else if (parent->was)
		ptrace(PTRACE_POKETEXT, tid, word_of(parent->was), parent->word);
}

void breakpoint_exec(struct breakpoint *b)
{
	*b = (struct breakpoint){ .addr = 0 };
}

void breakpoint_stopped(struct breakpoint *b, pid_t tid, struct user_regs_struct *r, int sig)
{
	b->was = b->planted;
	if (!b->planted)
		return;
	ptrace(PTRACE_POKETEXT, tid, word_of(b->planted), b->word);
	b->planted = 0;
	if (sig != SIGTRAP || r->rip != b->was + 1)
		return;
	r->rip = b->was;
	ptrace(PTRACE_SETREGS, tid, 0, r);
}

void breakpoint_run(struct breakpoint *b, pid_t tid, bool alone, int sig)
{
	u64 pc = 0;
	bool step;

	if (how == BREAK_HARDWARE || !b->addr || b->blocked) {
		ptrace(PTRACE_CONT, tid, 0, sig);
		return;
	}
	if (how == BREAK_INT3)
		pc = ptrace(PTRACE_PEEKUSER, tid, offsetof(struct user_regs_struct, rip), 0);
	/* A thread that stands on the breakpoint has to be stepped off it first. */
	step = how == BREAK_STEP || !alone || pc == b->addr || !plant(b, tid);
	ptrace(step ? PTRACE_SINGLESTEP : PTRACE_CONT, tid, 0, sig);
}
