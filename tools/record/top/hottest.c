// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hottest.c - finds the hottest function of the profile so far, in a child process whose use of
 * the CPU is bounded. See hottest.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/record/top/hottest.h"
#include "tools/shstk.h"

#define INTERVAL 1000000000 /* ns between two child processes, at least */
#define SHARE 20 /* a child process may use one part in SHARE of the time that passes */

/*
 * Writes the hottest function to @fd and ends. Runs in a child process, which has a copy of the
 * profile as it was at the fork.
 */
static void look(const struct recording *r, int fd, pid_t parent)
{
	FILE *out;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_OWN);
	/* Recording comes first: the child process has no higher priority than other processes. */
	if (getpriority(PRIO_PROCESS, 0) < 0)
		setpriority(PRIO_PROCESS, 0, 0);
	/* The line of progress cannot wait for a debuginfod server. */
	unsetenv("DEBUGINFOD_URLS");
	out = fdopen(fd, "w");
	if (!out || shstk_profile_hottest(r->profile, out) || fflush(out))
		_exit(EXIT_OWN);
	_exit(0);
}

static void begin(struct hottest *h, const struct recording *r)
{
	pid_t own = getpid();
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return;
	fflush(NULL);
	h->pid = fork();
	if (!h->pid)
		look(r, ends[1], own);
	close(ends[1]);
	if (h->pid < 0) {
		h->pid = 0;
		close(ends[0]);
		return;
	}
	h->fd = ends[0];
	h->size = 0;
}

static void take(struct hottest *h)
{
	ssize_t n;

	do {
		n = read(h->fd, h->said + h->size, sizeof(h->said) - 1 - h->size);
		h->size += n > 0 ? n : 0;
	} while (n > 0 || (n < 0 && errno == EINTR));
	h->said[h->size] = '\0';
}

void hottest_update(struct hottest *h, const struct recording *r, uint64_t at)
{
	struct rusage usage;
	int status;

	if (!h->pid) {
		if (at >= h->next && !shstk_profile_empty(r->profile))
			begin(h, r);
		return;
	}
	if (wait4(h->pid, &status, WNOHANG, &usage) != h->pid)
		return;
	take(h);
	close(h->fd);
	h->pid = 0;
	h->next = at + INTERVAL + (uint64_t)(SHARE * 1e9 * rusage_seconds(&usage));
	if (!status)
		memcpy(h->text, h->said, h->size + 1);
}

void hottest_end(struct hottest *h)
{
	int status;

	if (!h->pid)
		return;
	kill(h->pid, SIGKILL);
	while (waitpid(h->pid, &status, 0) < 0 && errno == EINTR)
		;
	close(h->fd);
	h->pid = 0;
}
