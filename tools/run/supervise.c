// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * supervise.c - enables shadow stacks from outside, in static programs on x86.
 *
 * At the first instruction after exec there is nothing to return to. So the system call that
 * enables the shadow stack is run there in the program. Programs that know nothing of shadow stacks
 * sooner or later violate them. As nothing in them can be replaced, every violation is repaired
 * here, in the registers.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/proc/maps.h"
#include "tools/shstk.h"
#include "tools/run/supervise.h"

#ifdef __x86_64__

#define NOTE_X86_SHSTK 0x204
#define SEGV_BAD_RETURN 10 /* SEGV_CPERR */
#define ARCH_SHSTK_ENABLE 0x5001
#define ARCH_SHSTK_LOCK 0x5003
#define MAX_ENTRIES (1u << 20)

static pid_t program;

/* Passes a signal on. The terminal sends its signals to the program itself. */
static void pass_on(int sig, siginfo_t *info, void *uc)
{
	(void)uc;
	if (info->si_code != SI_KERNEL)
		kill(program, sig);
}

/* Continues to the next entry to or exit from a system call. */
static bool next_syscall_stop(pid_t tid)
{
	int status;

	return !ptrace(PTRACE_SYSCALL, tid, 0, 0) && waitpid(tid, &status, __WALL) == tid &&
	       WIFSTOPPED(status) && WSTOPSIG(status) == (SIGTRAP | 0x80);
}

/* Runs one system call in the stopped thread, at its program counter. Returns its result. */
static long call_there(pid_t tid, long nr, long a, long b)
{
	struct user_regs_struct saved, regs;
	bool done;
	long code;

	if (ptrace(PTRACE_GETREGS, tid, 0, &saved))
		return -errno;
	errno = 0;
	code = ptrace(PTRACE_PEEKTEXT, tid, saved.rip, 0);
	if (errno)
		return -errno;
	regs = saved;
	regs.orig_rax = ~0ull;
	regs.rax = (unsigned long long)nr;
	regs.rdi = (unsigned long long)a;
	regs.rsi = (unsigned long long)b;
	if (ptrace(PTRACE_POKETEXT, tid, saved.rip, (code & ~0xffffl) | 0x050f) ||
	    ptrace(PTRACE_SETREGS, tid, 0, &regs))
		return -errno;
	/* These are its entry and its exit. A single step would be enough, but not everywhere. */
	done = next_syscall_stop(tid) && next_syscall_stop(tid) &&
	       !ptrace(PTRACE_GETREGS, tid, 0, &regs);
	saved.orig_rax = ~0ull;
	if (!done || ptrace(PTRACE_POKETEXT, tid, saved.rip, code) ||
	    ptrace(PTRACE_SETREGS, tid, 0, &saved))
		return -ESRCH;
	return (long)regs.rax;
}

/*
 * Enables the shadow stack. The thread is stopped within exec, which has to end first. Returns 0 or
 * an errno.
 */
static int switch_on(pid_t tid, bool lock)
{
	long err = -ESRCH;

	if (next_syscall_stop(tid))
		err = call_there(tid, SYS_arch_prctl, ARCH_SHSTK_ENABLE, 1);
	if (!err && lock)
		err = call_there(tid, SYS_arch_prctl, ARCH_SHSTK_LOCK, 1);
	return (int)-err;
}

static bool read_there(pid_t tid, uint64_t addr, void *buf, size_t size)
{
	struct iovec local = { buf, size };
	struct iovec remote = { (void *)(uintptr_t)addr, size };

	return process_vm_readv(tid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

/* Finds the line of the mapping that holds @addr. Returns false if there is none. */
static bool map_line(pid_t tid, uint64_t addr, char *buf, size_t size, uint64_t *end)
{
	struct mapping m;
	struct maps maps;
	bool found = false;

	if (maps_open(tid, "maps", &maps))
		return false;
	while (!found && maps_next(&maps, &m))
		found = addr >= m.start && addr < m.end;
	if (found) {
		*end = m.end;
		if (buf)
			snprintf(buf, size, "%s\n", maps.line);
	}
	maps_close(&maps);
	return found;
}

struct wrong {
	struct user_regs_struct regs;
	uint64_t pc;
	uint64_t ssp;
	uint64_t to;
	uint64_t shadow;
};

static bool look(pid_t tid, struct wrong *w)
{
	struct iovec iov = { &w->ssp, sizeof(w->ssp) };

	w->shadow = 0;
	if (ptrace(PTRACE_GETREGS, tid, 0, &w->regs) ||
	    ptrace(PTRACE_GETREGSET, tid, (void *)NOTE_X86_SHSTK, &iov) ||
	    !read_there(tid, w->regs.rsp, &w->to, 8))
		return false;
	w->pc = w->regs.rip;
	read_there(tid, w->ssp, &w->shadow, 8);
	return true;
}

/* Returns the address above the SSP that holds the return address, or 0. */
static uint64_t find_entry(pid_t tid, const struct wrong *w)
{
	uint64_t block[512], end;

	if (!map_line(tid, w->ssp, NULL, 0, &end))
		return 0;
	for (uint64_t at = w->ssp + 8, n = 0; at < end && n < MAX_ENTRIES;) {
		size_t words = (end - at) / 8 < 512 ? (end - at) / 8 : 512;

		if (!read_there(tid, at, block, words * 8))
			return 0;
		for (size_t i = 0; i < words; i++)
			if (block[i] == w->to)
				return at + i * 8;
		at += words * 8;
		n += words;
	}
	return 0;
}

static bool unwind_to(pid_t tid, uint64_t entry)
{
	struct iovec iov = { &entry, sizeof(entry) };

	return !ptrace(PTRACE_SETREGSET, tid, (void *)NOTE_X86_SHSTK, &iov);
}

static bool take_as_jump(pid_t tid, struct wrong *w)
{
	unsigned char code[4];
	const unsigned char *p = code;

	if (!read_there(tid, w->regs.rip, code, sizeof(code)))
		return false;
	if (*p == 0xf2 || *p == 0xf3)
		p++;
	if (*p != 0xc3 && *p != 0xc2)
		return false;
	w->regs.rsp += 8 + (*p == 0xc2 ? p[1] | (unsigned int)p[2] << 8 : 0);
	w->regs.rip = w->to;
	return !ptrace(PTRACE_SETREGS, tid, 0, &w->regs);
}

static void report(struct reporter *reporter, pid_t tid, const struct wrong *w, const char *action)
{
	const uint64_t places[] = { w->pc, w->to, w->shadow };
	char text[2048];
	uint64_t end;
	int n;

	n = snprintf(text, sizeof(text),
		     "violation %d %d %s at 0x%" PRIx64 " to 0x%" PRIx64 " shadow 0x%" PRIx64 "\n",
		     tid, tid, action, w->pc, w->to, w->shadow);
	for (int i = 0; i < 3; i++)
		if (map_line(tid, places[i], text + n, 600, &end))
			n += (int)strlen(text + n);
	reporter_take(reporter, text);
}

/* Repairs a violation. Returns whether the thread can go on without the signal. */
static bool repair(pid_t tid, struct reporter *reporter)
{
	struct wrong w;
	siginfo_t info;
	uint64_t entry;

	if (ptrace(PTRACE_GETSIGINFO, tid, 0, &info) || info.si_code != SEGV_BAD_RETURN ||
	    !look(tid, &w))
		return false;
	entry = find_entry(tid, &w);
	if (entry && unwind_to(tid, entry)) {
		report(reporter, tid, &w, "unwound");
		return true;
	}
	if (take_as_jump(tid, &w)) {
		report(reporter, tid, &w, "jumped");
		return true;
	}
	report(reporter, tid, &w, "fatal");
	return false;
}

/* Handles one stop of one thread. */
static void on_stop(pid_t tid, int status, bool lock, struct reporter *reporter)
{
	int sig = WSTOPSIG(status), event = status >> 16;

	if (event == PTRACE_EVENT_STOP && sig != SIGTRAP) {
		ptrace(PTRACE_LISTEN, tid, 0, 0);
		return;
	}
	if (event == PTRACE_EVENT_EXEC)
		switch_on(tid, lock);
	if (event || (sig == SIGSEGV && repair(tid, reporter)))
		sig = 0;
	ptrace(PTRACE_CONT, tid, 0, (void *)(uintptr_t)sig);
}

static int follow(bool lock, struct reporter *reporter)
{
	int status, ret = EXIT_OWN;
	pid_t tid;

	for (;;) {
		tid = waitpid(-1, &status, __WALL);
		if (tid < 0 && errno == EINTR)
			continue;
		if (tid < 0)
			return ret;
		if (WIFSTOPPED(status)) {
			on_stop(tid, status, lock, reporter);
		} else if (tid == program) {
			ret = WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) :
						    WEXITSTATUS(status);
			/* The program's children go on without a tracer. */
			return ret;
		}
	}
}

/* Waits until the new program is executed. Returns 0 or its exit status. */
static int wait_exec(void)
{
	int status;

	for (;;) {
		if (waitpid(program, &status, __WALL) != program)
			return EXIT_OWN;
		if (!WIFSTOPPED(status))
			return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_OWN;
		if (status >> 16 == PTRACE_EVENT_EXEC)
			return 0;
		ptrace(PTRACE_CONT, program, 0, 0);
	}
}

int supervise(char **argv, bool lock, struct reporter *reporter, void (*started)(int err))
{
	static const int passed[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM };
	const long options = PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
			     PTRACE_O_TRACEVFORK | PTRACE_O_TRACESYSGOOD;
	struct sigaction action = { .sa_sigaction = pass_on, .sa_flags = SA_SIGINFO };
	int status, err;

	program = fork();
	if (program < 0)
		return EXIT_OWN;
	if (!program) {
		raise(SIGSTOP);
		execvp(argv[0], argv);
		complain("%s: %s", argv[0], strerror(errno));
		_exit(errno == ENOENT ? EXIT_NOENT : EXIT_NOEXEC);
	}
	if (waitpid(program, &status, WUNTRACED) != program ||
	    ptrace(PTRACE_SEIZE, program, 0, options)) {
		started(errno);
		kill(program, SIGKILL);
		waitpid(program, &status, 0);
		return EXIT_OWN;
	}
	for (size_t i = 0; i < sizeof(passed) / sizeof(*passed); i++)
		sigaction(passed[i], &action, NULL);
	kill(program, SIGCONT);
	status = wait_exec();
	if (status)
		return status;
	err = switch_on(program, lock);
	started(err);
	ptrace(PTRACE_CONT, program, 0, 0);
	return follow(lock, reporter);
}

#else

int supervise(char **argv, bool lock, struct reporter *reporter, void (*started)(int err))
{
	(void)argv;
	(void)lock;
	(void)reporter;
	started(EOPNOTSUPP);
	return EXIT_OWN;
}

#endif
