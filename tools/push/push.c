// SPDX-License-Identifier: GPL-2.0-or-later
/* push.c - shstk push: sends profiles to servers that collect them, as push.h describes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/push/push.h"
#include "tools/shstk.h"

enum {
	OPT_TO = 256,
	OPT_RETRIES,
	OPT_SYMBOLS,
	OPT_SYMBOLS_SIZE,
};

#define SYMBOLS_MIB 512

static const struct argp_option options[] = {
	{ "to", OPT_TO, "URL", 0, "where to, such as http://localhost:4318", 0 },
	{ "retries", OPT_RETRIES, "N", 0, "how often a request is sent again (5)", 0 },
	{ "symbols", OPT_SYMBOLS, NULL, 0,
	  "send no profiles, but the debug files of the programs that FILEs name or are (parca)",
	  0 },
	{ "symbols-size", OPT_SYMBOLS_SIZE, "MIB", 0,
	  "with --symbols: how large a debug file may be (512); a larger one is not sent", 0 },
	READ_LIMIT_OPTION,
	{ "quiet", 'q', NULL, 0, "no summary", 0 },
	{ 0 },
};

static void check(const struct argp_state *state, const struct push *p)
{
	if (!p->nr_files)
		argp_failure(state, argp_err_exit_status, 0,
			     "which file? (a profile that record wrote, such as run.shstk)");
	if (!p->to)
		argp_failure(state, argp_err_exit_status, 0,
			     "where to? (--to=URL, such as --to=http://localhost:4318)");
	if (p->key && !p->cert)
		argp_failure(state, argp_err_exit_status, 0, "--key needs --cert");
	if (p->symbols && p->protocol != PUSH_AUTO && p->protocol != PUSH_PARCA)
		argp_failure(state, argp_err_exit_status, 0,
			     "--symbols: only Parca takes debug files (--protocol=parca)");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct push *p = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = p;
		return 0;
	case OPT_TO:
		p->to = arg;
		return 0;
	case OPT_RETRIES:
		p->retries = parse_number(state, "retries", arg, 0, 1000);
		return 0;
	case OPT_SYMBOLS:
		p->symbols = true;
		return 0;
	case OPT_SYMBOLS_SIZE:
		p->symbols_size = (uint64_t)parse_number(state, "symbols-size", arg, 1, 1 << 20)
				  << 20;
		return 0;
	case READ_LIMIT_OPT:
		read_limit_parse(state, arg, &p->read_limit);
		return 0;
	case 'q':
		p->quiet = true;
		return 0;
	case ARGP_KEY_ARG:
		p->files[p->nr_files++] = arg;
		return 0;
	case ARGP_KEY_END:
		check(state, p);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {
	{ &push_way_argp, 0, NULL, 0 },
	{ 0 },
};

const struct argp push_argp = {
	.options = options,
	.parser = parse,
	.children = children,
	.args_doc = "FILE...",
	.doc = "Send profiles to a server that collects them: OpenTelemetry's Collector, Pyroscope, Parca.\n\v"
	       "Files are those of -o FILE.shstk, pprof's (.pb.gz, .pb), perf.data or folded stacks. Nothing is kept for later: status 75 says that a file may be sent again.",
};

/* The bodies lie in a file of their own, so what is wrong with @path is known before one is sent. */
static int push_file(const struct push *p, const char *path)
{
	struct push_bodies bodies = { .out = tmpfile() };
	int status;

	if (!bodies.out) {
		complain("cannot make a temporary file in " P_tmpdir ": %s", strerror(errno));
		return EXIT_FAILED;
	}
	status = push_make_bodies(p, path, &bodies);
	if (status == EXIT_OK && !bodies.nr)
		complain("'%s' has no samples: nothing is sent", path);
	else if (status == EXIT_OK)
		status = push_send(p, &bodies);
	if (status == EXIT_OK && bodies.nr && !p->quiet)
		complain("sent '%s' in %zu request%s", path, bodies.nr, bodies.nr == 1 ? "" : "s");
	else if (status != EXIT_OK)
		complain("'%s' was not sent", path);
	fclose(bodies.out);
	free(bodies.service);
	return status;
}

/* A server that can't take a file now won't take the next one either. */
static int push_files(const struct push *p)
{
	int ret = EXIT_OK, status;

	for (int i = 0; i < p->nr_files; i++) {
		status = push_file(p, p->files[i]);
		if (status != EXIT_OK)
			ret = status;
		if (status != EXIT_OK && status != EXIT_FAILED) {
			for (i++; i < p->nr_files; i++)
				complain("'%s' was not sent", p->files[i]);
			return ret;
		}
	}
	return ret;
}

int cmd_push(int argc, char **argv)
{
	int status = EXIT_FAILED;
	struct push p;

	push_init(&p);
	p.symbols_size = (uint64_t)SYMBOLS_MIB << 20;
	p.files = calloc(argc + 1, sizeof(*p.files));
	if (p.files) {
		command_parse(&push_argp, argc, argv, &p);
		push_choose_protocol(&p);
		status = p.symbols ? push_symbols(&p) : push_files(&p);
	}
	push_deinit(&p);
	free(p.files);
	return status;
}
