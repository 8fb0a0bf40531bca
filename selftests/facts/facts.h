/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * facts.h - what the tests of shadow stack facts share
 *
 * A program tests one area. Its main() turns shadow stacks on by inline system
 * calls and never returns, so that all its tests run with them on; libc is the
 * ordinary static one, which knows nothing of them: the tests stay away from
 * longjmp().
 *
 * What the architecture supplies is in arch.h of the folder of its name.
 */
#ifndef FACTS_H
#define FACTS_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "arch.h"

/* The C library's headers are older than Linux 6.6, which has this. */
#ifndef SEGV_CPERR
#define SEGV_CPERR 10
#endif

#define noinline __attribute__((__noinline__))

/* The address to which the running function returns. */
#define RETURN_ADDRESS() ((uint64_t)__builtin_extract_return_addr(__builtin_return_address(0)))

#define WORD sizeof(uint64_t)

/* Reads a word of a shadow stack, which is read like any other memory. */
static inline uint64_t peek(unsigned long addr)
{
	ss_sync();
	return *(volatile uint64_t *)addr;
}

/* Takes the permission to store, where the architecture has one. */
ss_inline bool permit_write(void)
{
	unsigned long bits = SS_WRITE;

	return !bits || !ss_enable(bits);
}

/* ---- Mappings ---- */

struct mapping {
	unsigned long start;
	unsigned long end;
	char perms[8];
	bool shadow; /* "ss" is among smaps' VmFlags */
};

/* Finds the mapping of this process that holds @addr. Returns false if there is none. */
static inline bool find_mapping(unsigned long addr, struct mapping *map)
{
	FILE *smaps = fopen("/proc/self/smaps", "re");
	unsigned long start, end;
	char line[512], perms[8];
	bool found = false;

	if (!smaps)
		return false;
	memset(map, 0, sizeof(*map));
	while (fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%lx %7s", &start, &end, perms) == 3) {
			if (found)
				break;
			if (addr < start || addr >= end)
				continue;
			found = true;
			map->start = start;
			map->end = end;
			strcpy(map->perms, perms);
		} else if (found && !strncmp(line, "VmFlags:", 8)) {
			map->shadow = strstr(line, " ss") != NULL;
		}
	}
	fclose(smaps);
	return found;
}

/* ---- Children and how they end ---- */

struct ending {
	int status; /* exit status, or -1 if a signal ended the child */
	int signo; /* the signal, or 0 */
	int code; /* the signal's si_code */
	unsigned long addr; /* the signal's si_addr */
};

/*
 * Runs @fn(@arg) in a child and returns how that ended. A tracer watches, as it sees the signal
 * before its delivery, which needs a usable shadow stack itself. Signals other than faults are
 * delivered.
 */
static inline struct ending run_child(void (*fn)(void *), void *arg)
{
	struct ending end = { .status = -1 };
	siginfo_t info;
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		fn(arg);
		_exit(0);
	}
	while (waitpid(pid, &status, 0) == pid) {
		if (WIFEXITED(status)) {
			end.status = WEXITSTATUS(status);
			break;
		}
		if (WIFSIGNALED(status)) {
			if (!end.signo)
				end.signo = WTERMSIG(status);
			break;
		}
		switch (WSTOPSIG(status)) {
		case SIGSEGV:
		case SIGILL:
		case SIGBUS:
		case SIGTRAP:
			if (!ptrace(PTRACE_GETSIGINFO, pid, 0, &info)) {
				end.signo = info.si_signo;
				end.code = info.si_code;
				end.addr = (unsigned long)info.si_addr;
			}
			kill(pid, SIGKILL);
			ptrace(PTRACE_CONT, pid, 0, 0);
			break;
		default:
			ptrace(PTRACE_CONT, pid, 0, WSTOPSIG(status));
		}
	}
	return end;
}

/* Maps memory that children share with their parent. */
static inline void *shared_page(void)
{
	void *page = mmap(NULL, getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0);

	return page == MAP_FAILED ? NULL : page;
}

/*
 * Runs this program with two arguments and takes the first line that it prints. The new process
 * starts with shadow stacks off, as exec turns them off.
 */
static inline bool run_self(const char *arg1, const char *arg2, char *out, int size)
{
	FILE *from;
	int fds[2];
	pid_t pid;
	bool ok;

	out[0] = 0;
	fflush(NULL);
	if (pipe(fds))
		return false;
	pid = fork();
	if (!pid) {
		dup2(fds[1], STDOUT_FILENO);
		close(fds[0]);
		close(fds[1]);
		execl("/proc/self/exe", "self", arg1, arg2, NULL);
		_exit(127);
	}
	close(fds[1]);
	from = fdopen(fds[0], "r");
	ok = from && fgets(out, size, from);
	if (from)
		fclose(from);
	waitpid(pid, NULL, 0);
	return ok;
}

/* ---- Starting ---- */

/*
 * Turn shadow stacks on with the permissions @bits, or end the program with a
 * skip. Not a function: the frame it is used in must not return.
 */
#define START_SHADOW_STACK(bits)                                                     \
	do {                                                                         \
		long err_ = ss_enable(SS_ENABLE | (bits));                           \
                                                                                     \
		if (err_) {                                                          \
			printf("TAP version 13\n1..0 # SKIP no shadow stacks: %s\n", \
			       strerror(-err_));                                     \
			exit(KSFT_SKIP);                                             \
		}                                                                    \
	} while (0)

#endif
