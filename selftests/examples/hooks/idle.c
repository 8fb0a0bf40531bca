// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * idle.c - is linked with libshstk.a and captures nothing: tells what the library's constructors
 * changed in the process.
 *
 * Prints errno as main() finds it, the number of threads, what happens at signals, the number of
 * open files, and what the library says of itself. Built with -DALONE it does not refer to the
 * library, and prints the same except for the last line.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "shstk.h"

static void print_threads(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "Threads:", 8))
			fputs(line, stdout);
	}
	if (file)
		fclose(file);
}

/* Prints the signals that have a handler or are ignored, and those that are blocked. */
static void print_signals(void)
{
	struct sigaction action;
	sigset_t blocked;

	sigprocmask(SIG_SETMASK, NULL, &blocked);
	for (int signo = 1; signo <= SIGRTMAX; signo++) {
		if (!sigaction(signo, NULL, &action) && action.sa_handler != SIG_DFL)
			printf("signal %d: %s\n", signo,
			       action.sa_handler == SIG_IGN ? "ignored" : "handled");
		if (sigismember(&blocked, signo) == 1)
			printf("signal %d: blocked\n", signo);
	}
}

static void print_files(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int n = 0;

	while (folder && readdir(folder))
		n++;
	if (folder)
		closedir(folder);
	printf("files: %d\n", n);
}

int main(int argc, char **argv)
{
	int begin = errno;
#ifndef ALONE
	struct shstk_stats stats = { .size = sizeof(stats) };
	uint64_t pcs[8];
#endif

	(void)argv;
	printf("errno: %d\n", begin);
	print_threads();
	print_signals();
	print_files();
#ifndef ALONE
	if (argc > 1)
		shstk_capture(pcs, 8, NULL, NULL);
	shstk_get_stats(&stats);
	printf("library: %lu modules, %lu bytes, %lu captures\n", (unsigned long)stats.modules,
	       (unsigned long)stats.module_bytes, (unsigned long)stats.captures);
#else
	(void)argc;
#endif
	return 0;
}
