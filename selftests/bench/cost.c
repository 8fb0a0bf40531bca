// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * cost.c - a library that the heap benchmark preloads. At the end of a program it appends a line to
 * the file that SHSTK_COST names: the program's CPU time and elapsed time in seconds, and its name.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static double begin;

static double cpu_time(void)
{
	struct rusage u;

	if (getrusage(RUSAGE_SELF, &u))
		return 0;
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static double clock_time(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/*
 * Notes when the program began. All time before this is the loader's, and is CPU time: the loader
 * does not wait for anything.
 */
__attribute__((constructor)) static void start(void)
{
	begin = clock_time() - cpu_time();
}

__attribute__((destructor)) static void tell(void)
{
	const char *path = getenv("SHSTK_COST");
	char line[128];
	int fd, n;

	if (!path)
		return;
	n = snprintf(line, sizeof(line), "%.6f %.6f %.60s\n", cpu_time(), clock_time() - begin,
		     program_invocation_short_name);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0)
		return;
	if (write(fd, line, n) != n)
		perror(path);
	close(fd);
}
