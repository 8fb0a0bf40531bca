// SPDX-License-Identifier: GPL-2.0-or-later
/* objdump.c - runs objdump(1) and reads what it prints, as objdump.h describes. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/report/objdump.h"

#define CPU_SECONDS 30
#define MEMORY (4ull << 30)
#define MOST_LINES 4000000
#define MOST_LINE 1024 /* bytes of a line that are kept */
#define FREE_FD 10 /* the child's number of the file is at least this one */
#define NOT_FOUND 127

static void lower_limit(int resource, rlim_t value)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) || limit.rlim_cur < value)
		return;
	limit.rlim_cur = value;
	setrlimit(resource, &limit);
}

/* Becomes objdump in the child process, whose output goes to @out. */
static void execute(int fd, int out, uint64_t start, uint64_t stop)
{
	char from[48], to[48], path[48];
	char *argv[] = { "objdump", "-d", "-C", "--no-show-raw-insn", from, to, "--", path, NULL };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int file = fcntl(fd, F_DUPFD, FREE_FD);

	snprintf(from, sizeof(from), "--start-address=0x%llx", (unsigned long long)start);
	/* No instruction is cut at the end. */
	snprintf(to, sizeof(to), "--stop-address=0x%llx",
		 (unsigned long long)stop + OBJDUMP_LONGEST);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	lower_limit(RLIMIT_CPU, CPU_SECONDS);
	lower_limit(RLIMIT_AS, MEMORY);
	lower_limit(RLIMIT_CORE, 0);
	setenv("LC_ALL", "C", 1);
	execvp(argv[0], argv);
	_exit(errno == ENOENT ? NOT_FOUND : NOT_FOUND - 1);
}

/* Reads a line; what it has behind the size of @buf is dropped. Returns false at the end. */
static bool get_line(FILE *from, char *buf, int size)
{
	int c;

	if (!fgets(buf, size, from))
		return false;
	if (!strchr(buf, '\n'))
		do
			c = getc(from);
		while (c != EOF && c != '\n');
	buf[strcspn(buf, "\n")] = '\0';
	return true;
}

/*
 * Parses "  1139:<tab>push   %rbp" and "0000000000001139 <main>:". Returns false if a line is
 * neither.
 */
static bool parse(char *line, struct objdump_line *ret)
{
	char *at = line + strspn(line, " "), *end;
	size_t len;

	if (!isxdigit((unsigned char)*at))
		return false;
	ret->address = strtoull(at, &end, 16);
	len = strlen(end);
	ret->function = at == line && !strncmp(end, " <", 2) && !strcmp(end + len - 2, ">:");
	ret->text = ret->function ? end + 1 : end + 2;
	if (!ret->function && strncmp(end, ":\t", 2))
		return false;
	while (len > 2 && end[len - 1] == ' ')
		end[--len] = '\0';
	return true;
}

/* Hands out the lines in which addresses ascend. Returns whether there was an instruction. */
static bool read_lines(FILE *from, uint64_t start, uint64_t stop,
		       bool (*fn)(void *arg, const struct objdump_line *line), void *arg)
{
	char buf[MOST_LINE];
	struct objdump_line line;
	uint64_t next = start;
	bool any = false;

	for (int i = 0; i < MOST_LINES && get_line(from, buf, sizeof(buf)); i++) {
		if (!parse(buf, &line) || line.address < next || line.address >= stop)
			continue;
		any |= !line.function;
		next = line.address + !line.function;
		if (!fn(arg, &line))
			break;
	}
	return any;
}

int objdump_run(int fd, uint64_t start, uint64_t stop,
		bool (*fn)(void *arg, const struct objdump_line *line), void *arg)
{
	int fds[2], status = 0;
	bool any = false;
	FILE *from;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	fflush(NULL);
	pid = fork();
	if (!pid)
		execute(fd, fds[1], start, stop);
	close(fds[1]);
	from = pid > 0 ? fdopen(fds[0], "r") : NULL;
	if (from)
		any = read_lines(from, start, stop, fn, arg);
	if (from)
		fclose(from);
	else
		close(fds[0]);
	if (pid < 0)
		return -EAGAIN;
	/* What was wanted may have come before the end of its output. */
	if (any)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (any)
		return 0;
	return WIFEXITED(status) && WEXITSTATUS(status) == NOT_FOUND ? -ENOENT : -ENOEXEC;
}
