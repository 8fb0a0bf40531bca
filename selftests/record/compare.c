// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * compare.c - runs a program with shadow stacks, samples it by hardware and by software at the same
 * moments, and prints where the stacks differ.
 *
 *   compare AGENT HZ [--wall] -- COMMAND [ARGUMENT...]
 *
 * AGENT is compare_agent.so, which is preloaded into all programs that COMMAND executes. Of each
 * difference, two lines go to stderr once COMMAND has ended: "hardware: " and "software: ", with the
 * names of the functions, outermost first, and how the stack ends. The last line has the counts. The
 * exit status is that of COMMAND.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libshstk/shstk.h"
#include "libshstk/symbol/symbol.h"
#include "selftests/record/compare.h"

static void die(const char *what)
{
	fprintf(stderr, "compare: %s: %s\n", what, strerror(errno));
	exit(125);
}

/* Makes the file, in the current folder. */
static struct compare_shared *make_file(char *path)
{
	int fd = mkstemp(path);
	void *mem;

	if (fd < 0 || ftruncate(fd, sizeof(struct compare_shared)))
		die(path);
	mem = mmap(NULL, sizeof(struct compare_shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (mem == MAP_FAILED)
		die(path);
	return mem;
}

/* Runs the command, and returns its exit status. */
static int run(const char *agent, const char *path, char **command)
{
	char *preload = realpath(agent, NULL), *file = realpath(path, NULL);
	pid_t pid;
	int status;

	if (!preload || !file)
		die(agent);
	pid = fork();
	if (!pid) {
		setenv("LD_PRELOAD", preload, 1);
		setenv(COMPARE_FILE, file, 1);
		execvp(command[0], command);
		die(command[0]);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		die("waitpid");
	free(preload);
	free(file);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Prints the names of a stack's functions in one line, outermost first. */
static void print_stack(const char *source, struct shstk_symproc *proc,
			const struct compare_stack *s)
{
	fprintf(stderr, "%s: ", source);
	for (int i = s->nr; i--;) {
		bool pc = s->marks[i] & (SHSTK_MARK_PC | SHSTK_MARK_SIGNAL);
		const struct shstk_symbol *symbol = shstk_symproc_lookup(
			proc, s->pcs[i], pc ? SHSTK_SYMADDR_PC : SHSTK_SYMADDR_RETURN);

		fprintf(stderr, "%s+0x%llx;", symbol->frames[symbol->nr - 1].function,
			(unsigned long long)symbol->offset);
	}
	fprintf(stderr, " %s\n", shstk_end_name(s->end));
}

static void print_difference(struct shstk_symbols *symbols, const struct compare_difference *d)
{
	struct shstk_symproc *proc;

	if (shstk_symproc_create_past(symbols, d->pid, &proc) ||
	    shstk_symproc_set_maps(proc, d->maps, d->size) < 0)
		die("names");
	print_stack("hardware", proc, &d->hardware);
	print_stack("software", proc, &d->software);
	if (d->software.end != SHSTK_END_COMPLETE)
		fprintf(stderr, "software ended at 0x%llx\n",
			(unsigned long long)d->software.end_pc);
}

static void print_all(const struct compare_shared *shared)
{
	const struct shstk_symbols_opts opts = { .no_lines = true };
	struct shstk_symbols *symbols;

	if (shstk_symbols_create(&opts, &symbols))
		die("names");
	for (unsigned int i = 0; i < shared->differ && i < COMPARE_MOST; i++)
		if (shared->list[i].whole)
			print_difference(symbols, &shared->list[i]);
	shstk_symbols_destroy(symbols);
	fprintf(stderr,
		"hardware and software: %u stacks are the same, %u are not, %u were not taken from hardware, %u begin where shadow stacks were switched on, %u of them had called nothing since\n",
		shared->same, shared->differ, shared->unchecked, shared->later, shared->begun);
}

int main(int argc, char **argv)
{
	char path[] = "compare.XXXXXX";
	struct compare_shared *shared;
	int at = 3, status;

	if (argc > at && !strcmp(argv[at], "--wall"))
		at++;
	if (argc < at + 2 || strcmp(argv[at], "--") || atoi(argv[2]) < 1) {
		fprintf(stderr, "usage: compare AGENT HZ [--wall] -- COMMAND [ARGUMENT...]\n");
		return 125;
	}
	shared = make_file(path);
	shared->wall = at > 3;
	shared->period = 1000000000 / atoi(argv[2]);
	status = run(argv[1], path, argv + at + 1);
	print_all(shared);
	unlink(path);
	return status;
}
