// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sums.c - programs that know how much they used of something, and where.
 *
 *	sums burn		works until it is killed; a line says that it has begun
 *	sums cpu SECONDS	works for so much CPU time
 *	sums orphan		has a child that works for 0.5 s, which nobody waits for
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double cpu_time(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static void spin(unsigned long steps)
{
	for (unsigned long i = 0; i < steps; i++)
		__asm__ volatile("" : "+r"(i));
}

static __attribute__((noinline)) void use(double seconds)
{
	double until = cpu_time() + seconds;

	while (cpu_time() < until)
		spin(10000);
}

static int burn(char **args)
{
	(void)args;
	puts("begins");
	fflush(stdout);
	for (;;)
		spin(1000000);
	return 0;
}

static int cpu(char **args)
{
	use(*args ? atof(*args) : 1);
	return 0;
}

static int orphan(char **args)
{
	int ends[2];
	char byte;

	(void)args;
	/* A child whose end is ignored is in no sum of its parent. */
	signal(SIGCHLD, SIG_IGN);
	if (pipe(ends))
		return 1;
	if (!fork()) {
		use(0.5);
		_exit(0);
	}
	close(ends[1]);
	return read(ends[0], &byte, 1) ? 1 : 0;
}

static const struct {
	const char *name;
	int (*run)(char **args);
} programs[] = {
	{ "burn", burn },
	{ "cpu", cpu },
	{ "orphan", orphan },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(programs) / sizeof(*programs); i++)
		if (!strcmp(argv[1], programs[i].name))
			return programs[i].run(argv + 2);
	fprintf(stderr, "sums: which program?\n");
	return 2;
}
