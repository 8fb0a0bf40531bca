// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * shstk - the command: table of subcommands, and the few things they share.
 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/shstk.h"

static const struct command commands[] = {
	{ "record", cmd_record, "profile a command and its children" },
	{ "trace", cmd_trace, "print the stacks of a running process or a core file" },
	{ "unwind", cmd_unwind, "unwind the stacks in a perf.data file into a profile" },
	{ "run", cmd_run, "start a program with shadow stacks on" },
	{ "check", cmd_check, "is a program marked for shadow stacks, and what blocks it" },
	{ "events", cmd_events, "print violations of all programs as they happen" },
	{ "status", cmd_status, "what this machine offers, or the threads of a process" },
	{ NULL, NULL, NULL },
};

const char *argp_program_version = "shstk " SHSTK_VERSION;

static const char *command_name = "shstk";

void complain(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	flockfile(stderr);
	fprintf(stderr, "%s: ", command_name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	funlockfile(stderr);
}

int command_parse(const struct argp *argp, int argc, char **argv,
		  int usage_status, void *input)
{
	int next = argc;

	argp_err_exit_status = usage_status;
	argp_parse(argp, argc, argv, ARGP_IN_ORDER, &next, input);
	return next;
}

unsigned long parse_number(const struct argp_state *state, const char *what,
			   const char *arg, unsigned long min,
			   unsigned long max)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(arg, &end, 10);
	if (errno || end == arg || *end || strchr(arg, '-') || value < min ||
	    value > max)
		argp_failure(state, argp_err_exit_status, 0,
			     "%s '%s' is not a number from %lu to %lu", what,
			     arg, min, max);
	return value;
}

uint64_t now_ns(clockid_t clock)
{
	struct timespec ts = { 0 };

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int find_object(const char *name, char *buf, size_t size)
{
	static const char *const places[] = { "", "../lib/shstk/" };
	char exe[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	char *slash;

	if (n > 0) {
		exe[n] = '\0';
		slash = strrchr(exe, '/');
		if (slash)
			slash[1] = '\0';
		for (size_t i = 0; i < 2; i++) {
			if (snprintf(buf, size, "%s%s%s", exe, places[i],
				     name) >= (int)size)
				return -ENAMETOOLONG;
			if (!access(buf, R_OK))
				return 0;
		}
	}
	if (snprintf(buf, size, "%s/%s", SHSTK_OBJDIR, name) >= (int)size)
		return -ENAMETOOLONG;
	return access(buf, R_OK) ? -ENOENT : 0;
}

static void usage(FILE *to)
{
	fputs("Usage: shstk COMMAND [OPTION...]\n"
	      "       shstk COMMAND --help\n"
	      "Stack traces from shadow stacks.\n\n", to);
	for (const struct command *c = commands; c->name; c++)
		fprintf(to, "  %-12s%s\n", c->name, c->summary);
	fputs("\n  --help      print this text\n"
	      "  --version   print the version\n\n"
	      "Exit status: 0 done, 1 failed, 2 wrong options. A command that starts a\n"
	      "program ends with that program's status (128+N if signal N ended it), and\n"
	      "with 125 if it failed itself, 126 if the program could not be executed,\n"
	      "127 if it was not found.\n", to);
}

static int run(const struct command *command, int argc, char **argv)
{
	char *name;

	if (asprintf(&name, "shstk %s", command->name) < 0)
		return EXIT_FAILED;
	command_name = name;
	/* argp names itself after these, not after argv[0]. */
	program_invocation_name = name;
	program_invocation_short_name = name;
	argv[0] = name;
	return command->run(argc, argv);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") ||
	    !strcmp(argv[1], "help")) {
		usage(stdout);
		return EXIT_OK;
	}
	if (!strcmp(argv[1], "--version")) {
		puts(argp_program_version);
		return EXIT_OK;
	}
	for (const struct command *c = commands; c->name; c++)
		if (!strcmp(argv[1], c->name))
			return run(c, argc - 1, argv + 1);
	complain("unknown command '%s'; see shstk --help", argv[1]);
	return EXIT_USAGE;
}
