// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * stop.c - waits for threads to stop. See stop.h.
 *
 * The kernel reports by SIGCHLD that a thread stopped. The signal is blocked and waited for with a
 * time limit.
 */
#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "tools/proc/tasks.h"
#include "tools/shstk.h"
#include "tools/proc/stop.h"

#define MS 1000000ull /* in ns */
#define PAUSE (5 * MS) /* short, as several threads may have stopped for one signal */

void stop_prepare(void)
{
	sigset_t set;

	/* If whoever started this command set SIGCHLD to be ignored, it would not come. */
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

void stop_pause(uint64_t until)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC), left = until > now ? until - now : 0;
	struct timespec time;
	sigset_t set;

	left = left < PAUSE ? left : PAUSE;
	time = (struct timespec){ .tv_nsec = (long)left };
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigtimedwait(&set, NULL, &time);
}

bool stop_wait(pid_t tid, uint64_t until, int *status)
{
	for (;;) {
		if (waitpid(tid, status, __WALL | WNOHANG) == tid)
			return true;
		if (now_ns(CLOCK_MONOTONIC) >= until)
			return false;
		stop_pause(until);
	}
}

bool stop_is_stuck(pid_t pid, pid_t tid)
{
	struct task_stat stat;

	return !task_stat(pid, tid, &stat) && stat.state == 'D';
}

/* Reads the first word of a file of the thread in /proc, if it is a name or a number. */
static void first_word(pid_t pid, pid_t tid, const char *name, char *word, size_t size)
{
	char path[64];
	size_t n = 0;
	FILE *in;
	int c;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	in = fopen(path, "re");
	while (in && n + 1 < size && (c = fgetc(in)) != EOF && (isalnum(c) || strchr("_.-", c)))
		word[n++] = (char)c;
	word[n] = '\0';
	if (in)
		fclose(in);
}

void stop_describe(pid_t pid, pid_t tid, char *text, size_t size)
{
	struct task_stat stat;
	char where[64], call[16];
	size_t n;

	if (task_stat(pid, tid, &stat)) {
		snprintf(text, size, "ended");
		return;
	}
	first_word(pid, tid, "wchan", where, sizeof(where));
	first_word(pid, tid, "syscall", call, sizeof(call));
	n = snprintf(text, size, "%s", task_state_name(stat.state));
	if (n < size && *where && strcmp(where, "0"))
		n += snprintf(text + n, size - n, ", in %s()", where);
	if (n < size && isdigit((unsigned char)*call))
		snprintf(text + n, size - n, ", system call %s", call);
}
