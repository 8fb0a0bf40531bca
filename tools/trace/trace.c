// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * trace.c - the command line of `shstk trace`, which prints the stacks of all threads of a running
 * process or of a process that left a core file.
 */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "tools/output.h"
#include "tools/screen_lines.h"
#include "tools/shstk.h"
#include "tools/trace/trace.h"

enum {
	OPT_CORE = 256,
	OPT_EXE,
	OPT_SYSROOT,
	OPT_SOURCE,
	OPT_COMPARE,
	OPT_NO_STOP,
	OPT_GOROUTINES,
	OPT_TASKS,
	OPT_FULL_NAMES,
	OPT_EACH_THREAD,
};

static const struct argp_option options[] = {
	{ "pid", 'p', "PID", 0, "the process", 0 },
	{ "core", OPT_CORE, "FILE", 0, "a core file instead of a process", 0 },
	{ "exe", OPT_EXE, "FILE", 0, "the program that left the core file", 0 },
	{ "sysroot", OPT_SYSROOT, "DIR", 0, "look for the files that the core file names below DIR",
	  0 },
	{ "addresses", 'a', NULL, 0, "print the address of each frame", 0 },
	{ "full-names", OPT_FULL_NAMES, NULL, 0,
	  "C++ names with the default arguments of the standard library's templates", 0 },
	{ "depth", 'd', "N", 0,
	  "print at most N frames of a thread, and all of these (default: 4096, and what repeats in deeper ones once)",
	  0 },
	{ "each-thread", OPT_EACH_THREAD, NULL, 0, "print threads with equal stacks one by one",
	  0 },
	{ "source", OPT_SOURCE, "SOURCE", 0,
	  "hardware (shadow stacks only), unwind, or auto (the default): shadow stacks where they are on, unwinding elsewhere",
	  0 },
	{ "compare", OPT_COMPARE, NULL, 0, "take both sources and say where they differ", 0 },
	{ "json", 'j', NULL, 0, "print JSON", 0 },
	{ "no-stop", OPT_NO_STOP, NULL, 0,
	  "do not stop the process: let the kernel module shstk.ko read its shadow stacks", 0 },
	READ_LIMIT_OPTION,
	{ "goroutines", OPT_GOROUTINES, NULL, 0,
	  "of a Go program: all goroutines, those that do not run too, instead of threads", 0 },
	{ "tasks", OPT_TASKS, NULL, 0,
	  "of a Python program (3.14, 3.15): all tasks of asyncio, and who waits for whom, instead of threads",
	  0 },
	{ 0 },
};

static int parse_source(struct argp_state *state, const char *arg)
{
	static const char *const names[] = {
		[TRACE_AUTO] = "auto",
		[TRACE_HARDWARE] = "hardware",
		[TRACE_UNWIND] = "unwind",
	};

	for (int i = 0; i < 3; i++)
		if (!strcmp(arg, names[i]))
			return i;
	argp_failure(state, EXIT_USAGE, 0, "source '%s' is not auto, hardware or unwind", arg);
	return TRACE_AUTO;
}

static struct json json_output;

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct trace_opts *o = state->input;

	switch (key) {
	case 'p':
		o->pid = parse_number(state, "process ID", arg, 1, INT_MAX);
		return 0;
	case 'a':
		o->addresses = true;
		return 0;
	case OPT_EACH_THREAD:
		o->each_thread = true;
		return 0;
	case OPT_FULL_NAMES:
		o->full_names = true;
		return 0;
	case 'd':
		o->depth = parse_number(state, "depth", arg, 1, TRACE_MAX_DEPTH);
		o->fold = false;
		return 0;
	case OPT_CORE:
		o->core = arg;
		return 0;
	case OPT_EXE:
		o->exe = arg;
		return 0;
	case OPT_SYSROOT:
		o->sysroot = arg;
		return 0;
	case OPT_SOURCE:
		o->source = parse_source(state, arg);
		return 0;
	case OPT_COMPARE:
		o->compare = true;
		return 0;
	case 'j':
		o->json = &json_output;
		return 0;
	case OPT_NO_STOP:
		o->no_stop = true;
		return 0;
	case READ_LIMIT_OPT:
		read_limit_parse(state, arg, &o->read_limit);
		return 0;
	case OPT_GOROUTINES:
		o->goroutines = true;
		return 0;
	case OPT_TASKS:
		o->tasks = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp trace_argp = {
	.options = options,
	.parser = parse,
	.args_doc = "-p PID\n--core FILE",
	.doc = "Print the stacks of all threads of a running process, or of one that left a core file."
	       "\v"
	       "A process is stopped for a moment, without --no-stop; the output says for how long. "
	       "What each stack was taken from is said with it: the hardware's "
	       "shadow stack, or unwinding.",
};

void trace_put_missing(const struct trace_opts *opts, const struct shstk_symbols *symbols)
{
	/* A terminal has the lines of standard error already. */
	const struct caution_place place = {
		.json = opts->json,
		.report = opts->json || isatty(STDOUT_FILENO) ? NULL : stdout,
	};

	if (opts->json)
		shstk_json_open(opts->json, "cautions", '[');
	output_report_missing(symbols, &place);
	if (opts->json)
		shstk_json_close(opts->json);
}

static const char *contradiction(const struct trace_opts *o)
{
	if (!o->pid && !o->core)
		return "no process given: use -p PID, or --core FILE";
	if (o->pid && o->core)
		return "-p and --core exclude each other";
	if (o->pid && (o->exe || o->sysroot))
		return "--exe and --sysroot are for --core: a process says itself where its files are";
	if (o->compare && o->source != TRACE_AUTO)
		return "--compare takes both sources: leave --source out";
	if (o->no_stop && o->core)
		return "--no-stop is for a process: a core file does not run";
	if (o->no_stop && (o->compare || o->source == TRACE_UNWIND))
		return "--no-stop reads shadow stacks only: nothing can be unwound while it runs";
	if (o->goroutines && (o->compare || o->no_stop || o->source == TRACE_HARDWARE))
		return "--goroutines unwinds: there are no shadow stacks of goroutines, and the process has to be stopped";
	if (o->tasks && (o->compare || o->no_stop || o->goroutines || o->source != TRACE_AUTO))
		return "--tasks reads tasks of Python while the process is stopped: it excludes --compare, --no-stop, --goroutines and --source";
	return NULL;
}

int cmd_trace(int argc, char **argv)
{
	struct trace_opts o = { .depth = TRACE_DEPTH, .fold = true };
	int first = command_parse(&trace_argp, argc, argv, &o);
	const char *wrong;
	int status;

	json_output.out = stdout;
	if (first != argc) {
		complain("unexpected argument '%s'", argv[first]);
		return EXIT_USAGE;
	}
	wrong = contradiction(&o);
	if (wrong) {
		complain("%s", wrong);
		return EXIT_USAGE;
	}
	if (!o.json && !o.full_names)
		screen_lines_fit();
	status = o.core ? trace_core(&o) : o.no_stop ? trace_running(&o) : trace_process(&o);
	return end_output() ? EXIT_FAILED : status;
}
