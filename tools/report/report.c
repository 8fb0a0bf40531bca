// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * report.c - shstk report: reads profiles, chooses among their samples, and shows them or writes
 * them in other formats.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshstk/symbol/profile.h"
#include "tools/output.h"
#include "tools/read_limit.h"
#include "tools/report/annotate.h"
#include "tools/report/calltree.h"
#include "tools/report/filter.h"
#include "tools/report/perf_file.h"
#include "tools/shstk.h"

#define DEFAULT_TOP 20
#define DEFAULT_SHARE 1.0

struct report {
	struct output output;
	struct filter filter;
	struct annotate annotate;
	struct read_limit read_limit;
	bool inverted;
	bool tree;
	double share;
	char **files;
	int nr_files;
	bool quiet;
	bool by_cpu; /* --by names the CPU */
	char *labels; /* labels of a sample with its CPU */

	struct shstk_symbols *symbols;
	struct shstk_profile *profile;
};

enum {
	OPT_INVERTED = 256,
	OPT_TREE,
	OPT_LINES,
	OPT_BY,
};

static const struct argp_option options[] = {
	{ "tree", OPT_TREE, "PERCENT", OPTION_ARG_OPTIONAL,
	  "print the tree of calls; what has less than PERCENT (1) of the whole is left out", 0 },
	{ "inverted", OPT_INVERTED, NULL, 0,
	  "trees, flame graphs and folded stacks begin with the innermost function", 0 },
	{ "by", OPT_BY, "WHAT", 0,
	  "trees, flame graphs and folded stacks begin with WHAT: comm, thread, pid, tid, cpu, language, cgroup, command or other labels, separated by commas",
	  0 },
	{ "lines", OPT_LINES, NULL, 0, "tables have lines of functions", 0 },
	READ_LIMIT_OPTION,
	{ "quiet", 'q', NULL, 0, "no summary", 0 },
	{ 0 },
};

static double parse_share(const struct argp_state *state, const char *arg)
{
	char *end;
	double share = strtod(arg, &end);

	if (end == arg || (*end && strcmp(end, "%")) || !(share >= 0 && share <= 100))
		argp_failure(state, argp_err_exit_status, 0,
			     "tree '%s' is not a number from 0 to 100", arg);
	return share;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct report *r = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &r->output;
		state->child_inputs[1] = &r->filter;
		state->child_inputs[2] = &r->annotate;
		return 0;
	case OPT_TREE:
		r->tree = true;
		if (arg)
			r->share = parse_share(state, arg);
		return 0;
	case OPT_INVERTED:
		r->inverted = true;
		return 0;
	case OPT_BY:
		r->output.by = arg;
		return 0;
	case OPT_LINES:
		r->output.lines = true;
		return 0;
	case READ_LIMIT_OPT:
		read_limit_parse(state, arg, &r->read_limit);
		return 0;
	case 'q':
		r->quiet = true;
		return 0;
	case ARGP_KEY_ARG:
		r->files[r->nr_files++] = arg;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_failure(state, argp_err_exit_status, 0,
			     "which file? (a profile that record wrote, such as " OUTPUT_DEFAULT
			     ")");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {
	{ &output_argp, 0, NULL, 0 },
	{ &filter_argp, 0, NULL, 0 },
	{ &annotate_argp, 0, NULL, 0 },
	{ 0 },
};

const struct argp report_argp = {
	.options = options,
	.parser = parse,
	.args_doc = "FILE...",
	.doc = "Show profiles, choose among their samples, and write them in other formats.\n\v"
	       "Files are those of -o FILE.shstk, pprof's (.pb.gz, .pb), perf.data or folded stacks; several are summed up. Without -o no file is written, and without --tree and --annotate the table is printed.",
	.children = children,
};

/* Returns whether a word is in a list of words with commas between them. */
static bool has_word(const char *list, const char *word)
{
	for (size_t len; *list; list += len + (list[len] == ',')) {
		len = strcspn(list, ",");
		if (len == strlen(word) && !memcmp(list, word, len))
			return true;
	}
	return false;
}

/*
 * Gives the sample's CPU to it as a label, by which --by finds it. Returns false when memory runs
 * out.
 */
static bool add_cpu(struct report *r, struct shstk_sample *sample)
{
	size_t size = sample->labels_size;
	char *labels = realloc(r->labels, size + 32);

	if (!labels)
		return false;
	r->labels = labels;
	if (size)
		memcpy(labels, sample->labels, size);
	memcpy(labels + size, "cpu", 4);
	size += 4;
	size += snprintf(labels + size, 28, "%u", sample->cpu - 1) + 1;
	sample->labels = labels;
	sample->labels_size = size;
	return true;
}

static bool take(void *arg, struct shstk_profile *profile, struct shstk_sample *sample,
		 int64_t *values)
{
	struct report *r = arg;

	(void)values;
	if (r->by_cpu && sample->cpu && !add_cpu(r, sample))
		return false;
	return filter_takes(&r->filter, profile, sample);
}

static bool take_life(void *arg, const struct shstk_profile *profile, const struct shstk_life *life)
{
	struct report *r = arg;

	return filter_takes_life(&r->filter, profile, life);
}

static int read_files(struct report *r)
{
	const struct shstk_read_opts opts = {
		.frames_only = r->filter.frames_only,
		.keep_times = output_wants_times(&r->output),
		.take = take,
		.take_life = take_life,
		.arg = r,
	};

	for (int i = 0; i < r->nr_files; i++) {
		filter_next_file(&r->filter);
		if (report_read(r->profile, r->files[i], &opts))
			return EXIT_FAILED;
		if (!filter_had_times(&r->filter, r->files[i]))
			return EXIT_FAILED;
	}
	return filter_had_traces(&r->filter) ? EXIT_OK : EXIT_FAILED;
}

static int print_tree(struct report *r)
{
	const struct shstk_write_opts opts = {
		.type = r->output.type,
		.per_thread = r->output.per_thread,
		.full_names = r->output.full_names,
		.inverted = r->inverted,
		.by = r->output.by,
	};
	int err = calltree_print(r->profile, &opts, r->share);

	if (err) {
		complain("%s", strerror(-err));
		return EXIT_FAILED;
	}
	return end_output();
}

static int print_annotated(struct report *r)
{
	/* What report_done() prints is the reason. */
	if (shstk_profile_empty(r->profile))
		return EXIT_FAILED;
	r->annotate.type = r->output.type ? r->output.type - 1 : 0;
	r->annotate.full_names = r->output.full_names;
	r->annotate.file = r->files[0];
	return annotate_print(r->profile, &r->annotate);
}

static int make_profile(struct report *r)
{
	struct shstk_symbols_opts opts = { .no_servers = true };
	int err;

	read_limit_apply(&r->read_limit, &opts);
	err = shstk_symbols_create(&opts, &r->symbols);
	if (!err)
		err = shstk_profile_create(r->symbols, &r->profile);
	if (err)
		complain("%s", strerror(-err));
	return err ? EXIT_FAILED : EXIT_OK;
}

static void report_done(const struct report *r)
{
	char *names = output_names(&r->output);

	if (shstk_profile_empty(r->profile))
		complain("no sample was chosen");
	else if (names && *names && !r->quiet)
		complain("%s", names + 1);
	free(names);
}

/* Returns the title for flame graphs and pages. */
static const char *title(const struct report *r)
{
	const char *recorded = shstk_profile_title(r->profile);

	return recorded && r->nr_files == 1 ? recorded : r->files[0];
}

static int run(struct report *r)
{
	int status = make_profile(r);

	if (status == EXIT_OK && output_keep(&r->output, r->profile, NULL)) {
		complain("%s", strerror(ENOMEM));
		status = EXIT_FAILED;
	}
	if (status == EXIT_OK)
		status = read_files(r);
	if (status == EXIT_OK)
		status = filter_type(&r->filter, r->profile, &r->output.type);
	if (status != EXIT_OK)
		return status;
	if (!output_write(&r->output, r->profile, title(r)))
		return EXIT_FAILED;
	if (r->tree)
		status = print_tree(r);
	if (r->annotate.function && status == EXIT_OK)
		status = print_annotated(r);
	report_done(r);
	return status;
}

int cmd_report(int argc, char **argv)
{
	struct report r = { .share = DEFAULT_SHARE, .output.streams = true };
	int status = EXIT_OK;

	r.files = calloc(argc + 1, sizeof(*r.files));
	if (!r.files)
		return EXIT_FAILED;
	command_parse(&report_argp, argc, argv, &r);
	r.inverted |= r.filter.callers_of.set;
	r.by_cpu = r.output.by && has_word(r.output.by, "cpu");
	r.output.inverted = r.inverted;
	/* A format alone is what is to be printed; without any other output, the table is. */
	if (r.output.format && !r.output.nr)
		r.output.paths[r.output.nr++] = "-";
	if (!r.output.nr && !r.tree && !r.output.top && !r.annotate.function)
		r.output.top = DEFAULT_TOP;
	if (r.output.nr)
		status = output_check(&r.output, EXIT_FAILED);
	if (status == EXIT_OK)
		status = run(&r);
	shstk_profile_destroy(r.profile);
	shstk_symbols_destroy(r.symbols);
	filter_deinit(&r.filter);
	output_keep_drop(&r.output);
	free(r.labels);
	free(r.files);
	return status;
}
