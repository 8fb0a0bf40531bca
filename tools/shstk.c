// SPDX-License-Identifier: GPL-2.0-or-later
/* shstk.c - the main program: the table of commands, and a few things that the commands share. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/complete.h"
#include "tools/shortened.h"
#include "tools/shstk.h"

static const struct command commands[] = {
	{ "record", cmd_record, &record_argp, "COMMAND",
	  "profile a command, or programs that run already" },
	{ "top", cmd_top, &top_argp, "COMMAND",
	  "show the hottest functions of running programs, again and again" },
	{ "report", cmd_report, &report_argp, "FILE",
	  "show a profile, choose among its samples, write other formats" },
	{ "diff", cmd_diff, &diff_argp, "FILE",
	  "show what grew and what shrank between two profiles" },
	{ "push", cmd_push, &push_argp, "FILE", "send profiles to a server that collects them" },
	{ "trace", cmd_trace, &trace_argp, NULL,
	  "print the stacks of a running process or a core file" },
	{ "crash", cmd_crash, &crash_argp, "COMMAND",
	  "report why a process ended and where its threads were" },
	{ "unwind", cmd_unwind, &unwind_argp, "FILE",
	  "unwind the stacks in a perf.data file into a profile" },
	{ "run", cmd_run, &run_argp, "COMMAND", "start a program with shadow stacks on" },
	{ "check", cmd_check, &check_argp, "PROGRAM",
	  "tell whether a program is ready for shadow stacks, or what is not" },
	{ "events", cmd_events, &events_argp, NULL,
	  "print violations of all programs as they happen" },
	{ "rules", cmd_rules, &rules_argp, "compile|load|list|drop|status",
	  "load unwind rules into the kernel: callchains for perf and BPF" },
	{ "broker", cmd_broker, &broker_argp, NULL,
	  "open perf events for ordinary users' own processes" },
	{ "status", cmd_status, &status_argp, "PID",
	  "show what this machine offers, or the threads of a process" },
	{ 0 },
};

#define MAX_CHILDREN 4 /* maximum number of option groups that a command takes from elsewhere */

static const char version[] = "shstk " SHSTK_VERSION;

static const char *command_name = "shstk";

/*
 * Returns @text as print_printable() prints it. The caller frees it. Returns NULL if out of memory.
 */
static char *escape(const char *text)
{
	/* Two bytes can become six. */
	char *ret = malloc(3 * strlen(text) + 1), *to = ret;
	unsigned int bidi;

	if (!ret)
		return NULL;
	for (size_t n; *text; text += n ? n : 1) {
		n = control_size(text, &bidi);
		if (bidi)
			to += sprintf(to, "\\u%04x", bidi);
		else
			*to++ = n ? '?' : *text;
	}
	*to = '\0';
	return ret;
}

void print_printable(const char *text)
{
	char *escaped = escape(text);

	fputs(escaped ? escaped : "?", stdout);
	free(escaped);
}

/*
 * Writes to stderr, and ignores SIGPIPE: the reader may be gone, as tee(1) is after Ctrl-C, but a
 * message is no reason to lose a profile, which may be written next.
 */
static void put_error(const char *text)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction old;

	sigaction(SIGPIPE, &ignore, &old);
	fprintf(stderr, "%s: %s\n", command_name, text);
	sigaction(SIGPIPE, &old, NULL);
}

void complain(const char *fmt, ...)
{
	char *text = NULL, *escaped;
	va_list ap;

	fflush(stdout);
	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	escaped = text ? escape(text) : NULL;
	put_error(escaped ? escaped : fmt);
	free(escaped);
	free(text);
}

enum { OPT_USAGE = 1024 };

static const struct argp_option common_options[] = {
	{ "help", 'h', NULL, 0, "print this text", -1 },
	{ NULL, '?', NULL, OPTION_ALIAS | OPTION_HIDDEN, NULL, 0 },
	{ "usage", OPT_USAGE, NULL, 0, "print the names of all options", 0 },
	{ "version", 'V', NULL, 0, "print the version", 0 },
	{ 0 },
};

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	switch (key) {
	case 'h':
	case '?':
		argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
		return 0;
	case OPT_USAGE:
		argp_state_help(state, stdout, ARGP_HELP_USAGE | ARGP_HELP_EXIT_OK);
		return 0;
	case 'V':
		puts(version);
		exit(EXIT_OK);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp common_argp = {
	.options = common_options,
	.parser = parse_common,
};

int command_parse(const struct argp *argp, int argc, char **argv, void *input)
{
	struct argp_child children[MAX_CHILDREN + 2] = { 0 };
	struct argp whole = *argp;
	int n = 0, next = argc;

	for (; n < MAX_CHILDREN && argp->children && argp->children[n].argp; n++)
		children[n] = argp->children[n];
	children[n].argp = &common_argp;
	whole.children = children;
	argp_err_exit_status = EXIT_USAGE;
	argp_parse(&whole, argc, argv, ARGP_IN_ORDER | ARGP_NO_HELP, &next, input);
	return next;
}

unsigned long parse_number(const struct argp_state *state, const char *what, const char *arg,
			   unsigned long min, unsigned long max)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(arg, &end, 10);
	if (errno || end == arg || *end || strchr(arg, '-') || value < min || value > max)
		argp_failure(state, argp_err_exit_status, 0,
			     "%s '%s' is not a number from %lu to %lu", what, arg, min, max);
	return value;
}

int end_output(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return EXIT_OK;
	complain("standard output: %s", strerror(errno));
	return EXIT_FAILED;
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
			if (snprintf(buf, size, "%s%s%s", exe, places[i], name) >= (int)size)
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
	      "       shstk help COMMAND\n"
	      "Stack traces from shadow stacks.\n\n",
	      to);
	for (const struct command *c = commands; c->name; c++)
		fprintf(to, "  %-12s%s\n", c->name, c->summary);
	fputs("\n  -h, --help     print this text; after a command: its options\n"
	      "  -V, --version  print the version\n\n"
	      "Exit status: 0 done, 1 failed, 2 wrong options: nothing was started. A\n"
	      "command that starts a program ends with that program's status (128+N if\n"
	      "signal N ended it), and with 125 if it failed itself, 126 if the program\n"
	      "could not be executed, 127 if it was not found.\n",
	      to);
}

static int run(const struct command *command, int argc, char **argv)
{
	char *name;

	if (asprintf(&name, "shstk %s", command->name) < 0)
		return EXIT_FAILED;
	command_name = name;
	/* argp takes its name from these variables, not from argv[0]. */
	program_invocation_name = name;
	program_invocation_short_name = name;
	argv[0] = name;
	shortened_survive();
	return command->run(argc, argv);
}

static const struct command *find_command(const char *name)
{
	for (const struct command *c = commands; c->name; c++)
		if (!strcmp(name, c->name))
			return c;
	return NULL;
}

static int unknown(const char *name)
{
	complain("unknown %s '%s'; see shstk --help", *name == '-' ? "option" : "command", name);
	return EXIT_USAGE;
}

static int help_command(const char *name)
{
	const struct command *command = find_command(name);
	char *argv[] = { (char *)name, "--help", NULL };

	return command ? run(command, 2, argv) : unknown(name);
}

static bool is_one_of(const char *word, const char *const *words, int n)
{
	while (n--)
		if (!strcmp(word, words[n]))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	static const char *const help[] = { "help", "--help", "-h", "-?" };
	static const char *const versions[] = { "version", "--version", "-V" };

	if (argc < 2) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (is_one_of(argv[1], help, 4) && argc > 2)
		return help_command(argv[2]);
	if (is_one_of(argv[1], help, 4))
		usage(stdout);
	else if (is_one_of(argv[1], versions, 3))
		puts(version);
	else if (!strcmp(argv[1], "--completion-table"))
		complete_print(commands, stdout);
	else if (find_command(argv[1]))
		return run(find_command(argv[1]), argc - 1, argv + 1);
	else
		return unknown(argv[1]);
	return end_output();
}
