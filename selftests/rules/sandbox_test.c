// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sandbox_test.c - tests what a process in the sandbox of `shstk rules` can still do.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest.h"
#include "tools/rules/confine.h"

#define MEMORY ((size_t)256 << 20)
#define OUTPUT ((size_t)1 << 20)
#define HIGH 200 /* a descriptor that is open, too */

static const struct sandbox_limits limits = {
	.memory = MEMORY,
	.seconds = 1,
	.output = OUTPUT,
};

static int to_parent[2], to_child[2], out, own_status;

/* ---- Checks in the sandbox; each returns 0 if it passes ---- */

static bool denied(long ret)
{
	return ret < 0 && errno == EPERM;
}

static int opens(void)
{
	return !denied(open("/etc/passwd", O_RDONLY)) || !denied(open("/tmp", O_PATH));
}

/*
 * Returns 0 if the descriptors that were not kept are closed - below, between and above the kept
 * ones - and a kept one can be read.
 */
static int has_more_files(void)
{
	const int closed[] = { 0, 2, to_parent[0], to_child[1], HIGH };
	char byte = 0;

	for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++)
		if (write(closed[i], &byte, 1) >= 0 || errno != EBADF ||
		    read(closed[i], &byte, 1) >= 0 || errno != EBADF)
			return 1;
	return pread(out, &byte, 1, 0) != 1;
}

static int starts(void)
{
	return !denied(fork()) || !denied(execl("/bin/true", "true", NULL)) ||
	       !denied(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
}

static int talks(void)
{
	return !denied(socket(AF_INET, SOCK_STREAM, 0)) ||
	       !denied(socket(AF_UNIX, SOCK_STREAM, 0)) || !denied(kill(getppid(), 0)) ||
	       !denied(syscall(SYS_ptrace, 0, 0, 0, 0)) || !denied(syscall(SYS_setuid, 0));
}

static int makes_code(void)
{
	void *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return m == MAP_FAILED || !denied(mprotect(m, 4096, PROT_READ | PROT_EXEC)) ||
	       mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
		       MAP_FAILED ||
	       errno != EPERM;
}

static int works(void)
{
	char *volatile m = malloc(1 << 20);
	char text[PIPE_BUF];
	ssize_t n;

	if (!m)
		return 1;
	memset(m, 1, 1 << 20);
	m = realloc(m, 64 << 20);
	n = read(own_status, text, sizeof(text));
	if (!m || n < 1 || write(to_parent[1], text, n) != n || read(to_child[0], text, 1) != 1)
		return 1;
	return write(out, m, 1000) != 1000;
}

static int takes_memory(void)
{
	/* Volatile, because gcc 16 leaves out an allocation that nothing uses and says that it succeeds. */
	void *volatile memory = malloc(MEMORY);

	return memory || !denied(syscall(SYS_prlimit64, 0, 9, NULL, NULL));
}

static int writes_much(void)
{
	char *m = calloc(1, OUTPUT);
	ssize_t n = m ? write(out, m, OUTPUT) : 0;

	return n < 0 || write(out, "more", 4) == 4;
}

static int runs_long(void)
{
	volatile bool on = true;

	while (on)
		;
	return 1;
}

/* ---- Outside of the sandbox ---- */

static pid_t start(int (*what)(void))
{
	int kept[] = { out, to_child[0], to_parent[1], 0 };
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid)
		return pid;
	/*
	 * The file is opened here, because nothing can be opened in the sandbox, and with hidepid
	 * nobody else may open it.
	 */
	own_status = open("/proc/self/status", O_RDONLY);
	kept[3] = own_status;
	if (own_status < 0 || sandbox_limit(&limits) ||
	    sandbox_enter(kept, sizeof(kept) / sizeof(kept[0])))
		_exit(99);
	_exit(what());
}

static void expect(int (*what)(void), int status, const char *name)
{
	pid_t pid = start(what);
	int got = -1;

	waitpid(pid, &got, 0);
	if (got != status)
		ksft_print_msg("status %#x, not %#x\n", got, status);
	ksft_test_result(got == status, "%s\n", name);
}

static bool has_line(const char *text, const char *wanted)
{
	const char *found = strstr(text, wanted);

	return found && (found == text || found[-1] == '\n');
}

static void test_state(void)
{
	pid_t pid = start(works);
	char text[PIPE_BUF + 1] = "";
	bool in;
	int status;

	close(to_parent[1]); /* so that read() ends if the process ends without a message */
	in = read(to_parent[0], text, PIPE_BUF) > 0;
	ksft_test_result(in && has_line(text, "Seccomp:\t2\n") &&
				 has_line(text, "NoNewPrivs:\t1\n"),
			 "a filter of system calls is in force\n");
	if (geteuid())
		ksft_test_result_skip("not root's: it stays the user's\n");
	else
		ksft_test_result(has_line(text, "Uid:\t65534\t65534\t65534\t65534\n") &&
					 has_line(text, "CapEff:\t0000000000000000\n"),
				 "root is nobody there\n");
	if (write(to_child[1], "x", 1) != 1)
		ksft_print_msg("it does not listen\n");
	waitpid(pid, &status, 0);
	ksft_test_result(!status, "memory, pipes and open files work\n");
}

int main(void)
{
	ksft_print_header();
	ksft_set_plan(11);
	/*
	 * The starter of this test may ignore the signal; then a write that is too long fails and
	 * does not end the process.
	 */
	signal(SIGXFSZ, SIG_DFL);
	out = memfd_create("out", 0);
	if (pipe(to_parent) || pipe(to_child) || out < 0 || dup2(out, HIGH) < 0)
		ksft_exit_fail_msg("%s\n", strerror(errno));
	test_state();
	expect(opens, 0, "no file can be opened");
	expect(has_more_files, 0, "none is open but those that it needs");
	expect(starts, 0, "no process can be started");
	expect(talks, 0, "no socket, signal, ptrace");
	expect(makes_code, 0, "no memory becomes executable");
	expect(takes_memory, 0, "memory has a limit, which cannot be looked at");
	expect(writes_much, SIGXFSZ, "so have the bytes that it writes");
	expect(runs_long, SIGKILL, "and its time");
	ksft_finished();
}
