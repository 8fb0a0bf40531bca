// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * running_test.c - tests the search for files whose code a process executes: how long it waits, and for whom
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kselftest.h"
#include "tools/rules/running_files.h"
#include "tools/shstk.h"

#define TRIES 10 /* a machine that stands still for a second lets the search end, too */
#define SLOW 2 /* files for which the caller takes long */
#define SLOW_S 3 /* seconds for each of them: together more than the search waits for a process */
#define TOO_SLOW_S 70 /* each is more than a process is spared */

static uint64_t later; /* ns by which the clock was set on */
static int slow; /* seconds for each of these files */

uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec + later;
}

static int files;

static void use(void *arg, int fd, const char *path)
{
	(void)arg;
	(void)path;
	close(fd);
	if (files++ < SLOW)
		later += slow * 1000000000ull;
}

/* Searches this process, which executes its own file, the C library and the dynamic linker. */
static int search(int seconds)
{
	const struct running r = { .pid = getpid(), .stop = -1, .use = use };

	files = 0;
	slow = seconds;
	return running_files(&r);
}

int main(void)
{
	int err = -ETIMEDOUT;

	ksft_print_header();
	ksft_set_plan(2);
	for (int i = 0; i < TRIES && err == -ETIMEDOUT; i++)
		err = search(SLOW_S);
	ksft_test_result(
		!err && files > SLOW,
		"what the caller does with a file is no time of the process: %s, %d files\n",
		strerror(-err), files);
	err = search(TOO_SLOW_S);
	ksft_test_result(err == -ETIMEDOUT,
			 "unless it takes too long for the files of one process: %s\n",
			 strerror(-err));
	ksft_finished();
}
