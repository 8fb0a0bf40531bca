// SPDX-License-Identifier: GPL-2.0-or-later
/* reload.c - begins a recording anew with changed options. See reload.h. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/record/reload.h"
#include "tools/shstk.h"

#define SELF "/proc/self/exe"
#define GONE " (deleted)" /* the kernel adds this to the path of a file that is gone */

bool reload_possible(const struct recording *r)
{
	return r->opts->config && !r->pid;
}

/* Writes the path of this program to @path; after an update it is that of the new one. */
static void find_self(char path[PATH_MAX])
{
	const ssize_t end = strlen(GONE);
	ssize_t n = readlink(SELF, path, PATH_MAX - 1);

	path[n > 0 ? n : 0] = '\0';
	if (n > end && !strcmp(path + n - end, GONE))
		path[n - end] = '\0';
}

/*
 * Executes the program with the words that it was started with, and with @option if that is not
 * NULL. Returns if that fails, with errno set.
 */
static void execute(const struct recording *r, const char *option)
{
	char path[PATH_MAX];
	const char **words;
	size_t nr = 0, n = 0;

	while (r->argv[nr])
		nr++;
	words = calloc(nr + 3, sizeof(*words));
	if (!words)
		return;
	words[n++] = "shstk";
	words[n++] = "record";
	if (option)
		words[n++] = option;
	for (size_t i = 1; i < nr; i++)
		words[n++] = r->argv[i];
	find_self(path);
	execv(path, (char *const *)words);
	execv(SELF, (char *const *)words);
	free(words);
}

bool reload_check(const struct recording *r)
{
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		execute(r, "--dry-run");
		_exit(EXIT_OWN);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			pid = -1;
	if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_OK)
		return true;
	complain("the options in '%s' are not used: recording goes on as before", r->opts->config);
	return false;
}

int reload(const struct recording *r)
{
	sigset_t none;

	/* What is executed decides itself whether it needs a higher priority. */
	setpriority(PRIO_PROCESS, 0, r->nice);
	/* Its children must not inherit blocked signals; and SIGHUP must not end it before it is ready. */
	signal(SIGHUP, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	fflush(NULL);
	execute(r, NULL);
	complain("cannot execute " SELF ": %s", strerror(errno));
	return EXIT_OWN;
}
