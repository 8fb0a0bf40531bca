// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tasks.c - reads what /proc tells of processes and threads. See tasks.h.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/proc/tasks.h"
#include "tools/shstk.h"

#define ALONE 3 /* links of the folder of a process's threads, if there is one */

DIR *tasks_open(pid_t pid)
{
	char path[64] = "/proc";
	DIR *dir;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir && errno == ENOENT)
		errno = ESRCH;
	return dir;
}

pid_t tasks_next(DIR *dir)
{
	struct dirent *e;

	while ((e = readdir(dir))) {
		pid_t number = atoi(e->d_name);

		if (number > 0)
			return number;
	}
	return 0;
}

bool tasks_single(pid_t pid)
{
	char path[64];
	struct stat st;

	/* The kernel counts a link for each thread, and those of a folder that has no others. */
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	return !stat(path, &st) && st.st_nlink == ALONE;
}

pid_t tasks_other(pid_t pid)
{
	DIR *dir = tasks_open(pid);
	struct task_stat stat;
	pid_t tid = 0;

	while (dir && (tid = tasks_next(dir)))
		if (tid != pid && !task_stat(pid, tid, &stat) && stat.state != 'Z' &&
		    stat.state != 'X')
			break;
	if (dir)
		closedir(dir);
	return tid;
}

uint64_t task_waited(void)
{
	FILE *f = fopen("/proc/thread-self/schedstat", "re");
	unsigned long long waited = 0;

	if (!f)
		return 0;
	/* Time on a CPU, time in front of one, number of times. */
	if (fscanf(f, "%*u %llu", &waited) != 1)
		waited = 0;
	fclose(f);
	return waited;
}

bool task_field(pid_t pid, pid_t tid, const char *name, char *value, size_t size)
{
	size_t n = strlen(name), room = 0;
	char path[64], *line = NULL;
	bool found = false;
	FILE *in;

	*value = '\0';
	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	in = fopen(path, "re");
	while (in && !found && getline(&line, &room, in) > 0) {
		found = !strncmp(line, name, n) && line[n] == ':';
		if (found)
			snprintf(value, size, "%s", line + n + 1 + strspn(line + n + 1, " \t"));
	}
	free(line);
	if (in)
		fclose(in);
	return found;
}

pid_t task_own_id(pid_t pid, pid_t tid)
{
	char ids[512]; /* one for each of up to 33 namespaces */
	const char *last;

	/* The one in the namespace of whoever asks comes first. */
	task_field(pid, tid, "NSpid", ids, sizeof(ids));
	last = strrchr(ids, '\t');
	return last ? atoi(last) : 0;
}

unsigned long task_memory(pid_t pid)
{
	char kib[32];

	task_field(pid, pid, "RssAnon", kib, sizeof(kib));
	return strtoul(kib, NULL, 10);
}

bool process_gone(pid_t pid)
{
	return pid <= 0 || (kill(pid, 0) && errno == ESRCH);
}

static bool first_has_ended(pid_t pid)
{
	struct task_stat stat;

	return !task_stat(pid, pid, &stat) && (stat.state == 'Z' || stat.state == 'X');
}

pid_t tasks_living(pid_t pid)
{
	pid_t other = first_has_ended(pid) ? tasks_other(pid) : 0;

	return other ? other : pid;
}

bool process_is_zombie(pid_t pid)
{
	return first_has_ended(pid) && !tasks_other(pid);
}

const char *process_gone_why(pid_t pid)
{
	return process_is_zombie(pid) ? "it is a zombie: it has ended" : strerror(ESRCH);
}

/*
 * Copies the name out of a line "PID (name) state ...". The name may have parentheses of its own.
 */
static void copy_name(struct task_stat *ret, const char *line, const char *end)
{
	const char *at = strchr(line, '(');
	size_t n = 0;

	for (at = at ? at + 1 : end; at < end && n < sizeof(ret->name) - 1; at++)
		ret->name[n++] = *at;
	ret->name[n] = '\0';
	printable(ret->name);
}

int task_stat(pid_t pid, pid_t tid, struct task_stat *ret)
{
	unsigned long long user, system;
	char path[64], line[1024], *end;
	struct task_stat stat;
	size_t n = 0;
	FILE *in;

	if (tid)
		snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	else
		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	in = fopen(path, "re");
	if (!in)
		return -ESRCH;
	n = fread(line, 1, sizeof(line) - 1, in);
	fclose(in);
	line[n] = '\0';
	end = strrchr(line, ')');
	if (!end || sscanf(end + 1, " %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %llu %llu",
			   &stat.state, &stat.parent, &stat.flags, &user, &system) != 5)
		return -ESRCH;
	copy_name(&stat, line, end);
	stat.cpu = (user + system) * (1000000000ull / sysconf(_SC_CLK_TCK));
	*ret = stat;
	return 0;
}

const char *task_state_name(char state)
{
	switch (state) {
	case 'R':
		return "running";
	case 'S':
		return "sleeping";
	case 'D':
		return "in disk sleep";
	case 'T':
		return "stopped";
	case 't':
		return "stopped by a tracer";
	case 'Z':
		return "ended";
	default:
		return "in another state";
	}
}
