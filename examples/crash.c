// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A crash handler: the signal handler captures the stack, and another process names its functions.
 *
 *   cc -O2 -g -o crash crash.c $(pkg-config --cflags --libs libshstk-symbolize libshstk)
 *   ./crash
 *
 * A program that crashed can't be trusted to allocate memory or to read files. So a child process,
 * which is made while the program still works, waits at a pipe for the addresses and prints them
 * with names.
 */
#define _GNU_SOURCE
#include <shstk_symbolize.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEPTH 128

/* The message that the handler sends. It is smaller than PIPE_BUF, so it arrives in one piece. */
struct crash {
	int depth;
	uint8_t marks[DEPTH];
	uint64_t pcs[DEPTH];
};

static int to_child;
static pid_t child;

/*
 * Sends the stack to the child. When this returns, the kernel ends the program by the same signal,
 * because of SA_RESETHAND.
 */
static void on_crash(int sig, siginfo_t *info, void *context)
{
	static struct crash crash;
	struct shstk_opts opts = { .size = sizeof(opts), .marks = crash.marks };

	(void)sig, (void)info;
	crash.depth = shstk_capture_context(context, crash.pcs, DEPTH, &opts, NULL);
	if (write(to_child, &crash, sizeof(crash)) == sizeof(crash))
		waitpid(child, NULL, 0);
}

/* Runs in the child: names the stack of the parent, which waits meanwhile. */
static void report(int from, pid_t parent)
{
	struct shstk_symbolizer *names;
	struct shstk_name name;
	struct crash crash;

	if (read(from, &crash, sizeof(crash)) != sizeof(crash))
		_exit(0); /* The parent ended without a crash. */
	if (shstk_symbolizer_create(parent, &names))
		_exit(1);
	for (int i = 0; i < crash.depth; i++) {
		shstk_symbolize(names, crash.pcs[i], crash.marks[i], &name, 1, sizeof(name));
		fprintf(stderr, "#%d %s +%#lx %s:%u\n", i, name.function,
			(unsigned long)name.offset, name.file ? name.file : name.module, name.line);
	}
	_exit(0);
}

static void catch_crashes(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	stack_t other = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction act = { .sa_sigaction = on_crash,
				 .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND };
	static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };
	pid_t parent = getpid();
	int ends[2];

	if (pipe(ends))
		exit(1);
	child = fork();
	if (!child) {
		close(ends[1]);
		report(ends[0], parent);
	}
	close(ends[0]);
	to_child = ends[1];
	sigaltstack(&other, NULL); /* A handler can't run on a stack that has overflowed. */
	for (unsigned int i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaction(signals[i], &act, NULL);
}

__attribute__((noinline)) int careless(int *pointer)
{
	return *pointer + 1;
}

__attribute__((noinline)) int caller(int *pointer)
{
	return careless(pointer) + 1;
}

int main(int argc, char **argv)
{
	(void)argv;
	catch_crashes();
	return caller(argc > 100 ? &argc : NULL);
}
