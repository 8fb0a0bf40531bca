// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sleepers.c - many processes that only wait.
 *
 *   sleepers PROCESSES MAPPINGS
 *
 * Each process maps its program so many times more, as code. Prints a line when all are there, and waits
 * until standard input ends; all processes end then.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Maps the program, says that this is done, and waits for the end of the pipe @end. */
static void sleep_on(int program, int mappings, int end, int done)
{
	char c;

	for (int i = 0; i < mappings; i++)
		if (mmap(NULL, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, program, 0) == MAP_FAILED)
			_exit(1);
	if (write(done, "", 1) == 1)
		while (read(end, &c, 1) > 0)
			;
	_exit(0);
}

int main(int argc, char **argv)
{
	const int nr = argc > 2 ? atoi(argv[1]) : 0, mappings = argc > 2 ? atoi(argv[2]) : 0;
	const int program = open("/proc/self/exe", O_RDONLY);
	int end[2], done[2];
	char c;

	signal(SIGCHLD, SIG_IGN);
	if (pipe(end) || pipe(done))
		return 1;
	for (int i = 0; i < nr; i++) {
		const pid_t child = fork();

		if (child < 0) {
			perror("sleepers");
			return 1;
		}
		if (!child) {
			close(end[1]);
			sleep_on(program, mappings, end[0], done[1]);
		}
	}
	for (int i = 0; i < nr; i++)
		if (read(done[0], &c, 1) != 1)
			return 1;
	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	return 0;
}
