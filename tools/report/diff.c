// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * diff.c - shstk diff: what grew and what shrank between two profiles, as a table, and as a profile
 * of the differences.
 *
 * Both are read into one profile, the first one with negative values, so that what is equal in both
 * adds up to nothing. The table is made from the same samples, as they are read.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libshstk/symbol/export.h"
#include "libshstk/symbol/json.h"
#include "tools/read_limit.h"
#include "tools/report/filter.h"
#include "tools/report/perf_file.h"
#include "tools/report/screen_name.h"
#include "tools/report/side.h"
#include "tools/shstk.h"

#define DEFAULT_TOP 20
#define NUMBERS 47 /* columns before the names */
#define EXIT_GREW 3
#define BASE_LABEL "pprof::base\0true" /* by which go tool pprof knows what shares are parts of */

enum side { BEFORE, AFTER };

/**
 * struct function_growth - the values of a function in both profiles
 * @hh: link in the table.
 * @name: name of the function, the key: equal names are the same pointer.
 * @self: value of the function itself, before and after.
 */
struct function_growth {
	UT_hash_handle hh;
	const char *name;
	int64_t self[2];
};

struct diff {
	struct filter filter;
	struct read_limit read_limit;
	const char *paths[2];
	const char *output;
	const char *format; /* format of @output; set by check_output() */
	bool normalize;
	bool full_names;
	bool json;
	double most; /* percent; less than 0: no limit */
	unsigned long top;

	struct shstk_symbols *symbols;
	struct shstk_profile *profile;
	enum side side; /* the profile that is being read */
	double scale[SHSTK_PROFILE_MAX_TYPES]; /* factor for each type of the second profile */
	unsigned int type; /* type that is shown, from 1 */
	struct function_growth *table;
	int64_t total[2];
	char *labels; /* labels of a sample of the first profile, with BASE_LABEL */
	bool failed; /* memory ran out */
};

enum {
	OPT_NORMALIZE = 256,
	OPT_FAIL_ABOVE,
	OPT_TOP,
	OPT_FULL_NAMES,
};

static const struct argp_option options[] = {
	{ "output", 'o', "FILE", 0,
	  "write the differences to FILE: .html, a page that shows both, red and blue; .svg, a flame graph, likewise; .folded, stacks with both values; .pb.gz or .pb, a profile with negative values",
	  0 },
	{ "normalize", OPT_NORMALIZE, NULL, 0, "scale the second profile to the first one's total",
	  0 },
	{ "fail-above", OPT_FAIL_ABOVE, "PERCENT", 0,
	  "end with 3 if the total, or a function itself, grew by more than this part of the first profile's total",
	  0 },
	{ "top", OPT_TOP, "N", 0, "print the N (20) functions that changed most", 0 },
	{ "json", 'j', NULL, 0, "print them as JSON", 0 },
	{ "full-names", OPT_FULL_NAMES, NULL, 0, "names in full", 0 },
	READ_LIMIT_OPTION,
	{ 0 },
};

static double parse_percent(const struct argp_state *state, const char *arg)
{
	char *end;
	double ret = strtod(arg, &end);

	if (end == arg || (*end && strcmp(end, "%")) || !(ret >= 0 && ret < 1e9))
		argp_failure(state, argp_err_exit_status, 0,
			     "fail-above '%s' is not a percentage, such as 5%%", arg);
	return ret;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct diff *d = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &d->filter;
		return 0;
	case 'o':
		d->output = arg;
		return 0;
	case OPT_NORMALIZE:
		d->normalize = true;
		return 0;
	case OPT_FAIL_ABOVE:
		d->most = parse_percent(state, arg);
		return 0;
	case OPT_TOP:
		d->top = parse_number(state, "top", arg, 1, 100000);
		return 0;
	case 'j':
		d->json = true;
		return 0;
	case OPT_FULL_NAMES:
		d->full_names = true;
		return 0;
	case READ_LIMIT_OPT:
		read_limit_parse(state, arg, &d->read_limit);
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num >= 2)
			argp_failure(state, argp_err_exit_status, 0,
				     "unexpected argument '%s': two files are compared", arg);
		d->paths[state->arg_num] = arg;
		return 0;
	case ARGP_KEY_END:
		if (state->arg_num < 2)
			argp_failure(state, argp_err_exit_status, 0,
				     "no files given: name two profiles, before and after");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {
	{ &filter_argp, 0, NULL, 0 },
	{ 0 },
};

const struct argp diff_argp = {
	.options = options,
	.parser = parse,
	.args_doc = "BEFORE AFTER",
	.doc = "Print which functions take more, and which less, in the second of two profiles.\n\v"
	       "Files are pprof's (.pb.gz, .pb) or folded stacks.",
	.children = children,
};

static struct function_growth *get_growth(struct diff *d, const char *name)
{
	struct function_growth *g;

	HASH_FIND(hh, d->table, &name, sizeof(name), g);
	if (g)
		return g;
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->name = name;
	HASH_ADD(hh, d->table, name, sizeof(g->name), g);
	if (g->hh.tbl)
		return g;
	free(g);
	return NULL;
}

/* Counts the value of a sample for its innermost function, if it has one. */
static void count(struct diff *d, const struct shstk_profile *profile,
		  const struct shstk_sample *sample, int64_t value)
{
	const struct shstk_symbol *symbol;
	struct function_growth *g;

	d->total[d->side] = shstk_add(d->total[d->side], value);
	if (!sample->nr)
		return;
	symbol = shstk_location_symbol(profile, profile->locations[sample->locations[0]]);
	g = get_growth(d, symbol->frames[0].function);
	if (g)
		g->self[d->side] = shstk_add(g->self[d->side], value);
	else
		d->failed = true;
}

/* Gives a sample of the first profile the label by which pprof knows it. */
static void mark_base(struct diff *d, struct shstk_sample *sample)
{
	char *labels = realloc(d->labels, sample->labels_size + sizeof(BASE_LABEL));

	if (!labels) {
		d->failed = true;
		return;
	}
	d->labels = labels;
	if (sample->labels_size)
		memcpy(labels, sample->labels, sample->labels_size);
	memcpy(labels + sample->labels_size, BASE_LABEL, sizeof(BASE_LABEL));
	sample->labels = labels;
	sample->labels_size += sizeof(BASE_LABEL);
}

/* Makes values of the first profile negative. */
static void negate(int64_t *values, unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++)
		values[i] = values[i] > INT64_MIN ? -values[i] : INT64_MAX;
}

static bool take(void *arg, struct shstk_profile *profile, struct shstk_sample *sample,
		 int64_t *values)
{
	struct diff *d = arg;

	if (!filter_takes(&d->filter, profile, sample))
		return false;
	if (d->side == AFTER && d->normalize)
		for (unsigned int i = 0; i < profile->nr_types; i++)
			values[i] = side_scaled(values[i], d->scale[i]);
	if (!d->type)
		d->type = shstk_profile_find_type(profile, d->filter.type);
	if (d->type)
		count(d, profile, sample, values[d->type - 1]);
	if (d->side == BEFORE) {
		negate(values, profile->nr_types);
		mark_base(d, sample);
	}
	return true;
}

static int read_side(struct diff *d, enum side side)
{
	const struct shstk_read_opts opts = {
		.frames_only = d->filter.frames_only,
		.take = take,
		.arg = d,
	};

	d->side = side;
	filter_next_file(&d->filter);
	if (report_read(d->profile, d->paths[side], &opts))
		return EXIT_FAILED;
	if (d->failed) {
		complain("%s", strerror(ENOMEM));
		return EXIT_FAILED;
	}
	return filter_had_times(&d->filter, d->paths[side]) ? EXIT_OK : EXIT_FAILED;
}

/*
 * Sets the factors by which the second profile is scaled. They depend on its totals, so it is read
 * here once more, before it is read for the table.
 */
static int measure(struct diff *d)
{
	struct shstk_profile *after;
	int status = side_read(d->symbols, d->paths[AFTER], &d->filter, NULL, &after);

	if (status != EXIT_OK)
		return status;
	for (unsigned int i = 0; i < after->nr_types; i++)
		/* The values of the first profile are negative here. */
		d->scale[i] = after->totals[i] ? -(double)d->profile->totals[i] / after->totals[i] :
						 0;
	shstk_profile_destroy(after);
	return EXIT_OK;
}

static int64_t change(const struct function_growth *g)
{
	return shstk_add(g->self[AFTER],
			 g->self[BEFORE] > INT64_MIN ? -g->self[BEFORE] : INT64_MAX);
}

static int by_change(const struct function_growth *a, const struct function_growth *b)
{
	const double x = fabs((double)change(a)), y = fabs((double)change(b));

	if (x != y)
		return x > y ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* Formats a change as "+1.2 s", "-3" or "0". */
static void format_change(char *buf, size_t size, int64_t value, const char *unit)
{
	*buf = '+';
	shstk_format_value(buf + (value > 0), size - (value > 0), value, unit);
}

static double percent(const struct diff *d, int64_t part)
{
	return d->total[BEFORE] ? 100.0 * part / d->total[BEFORE] : part ? INFINITY : 0;
}

static void put_function(const struct diff *d, const struct function_growth *g, const char *unit)
{
	char before[32], after[32], by[34], buf[SCREEN_NAME_MAX];

	shstk_format_value(before, sizeof(before), g->self[BEFORE], unit);
	shstk_format_value(after, sizeof(after), g->self[AFTER], unit);
	format_change(by, sizeof(by), change(g), unit);
	printf("%11s %11s %12s %+7.2f%%  %s\n", before, after, by, percent(d, change(g)),
	       d->full_names ? g->name : screen_name(g->name, screen_width() - NUMBERS, buf));
}

static void put_table(struct diff *d)
{
	const struct shstk_value_type *type = &d->profile->types[d->type - 1];
	const struct function_growth whole = { .self = { d->total[BEFORE], d->total[AFTER] } };
	unsigned long lines = d->top;
	char before[32], after[32], by[34];

	HASH_SORT(d->table, by_change);
	for (size_t i = 0; i < d->profile->nr_cautions; i++)
		shstk_put_caution(stdout, d->profile->cautions[i], screen_limit());
	shstk_format_value(before, sizeof(before), d->total[BEFORE], type->unit);
	shstk_format_value(after, sizeof(after), d->total[AFTER], type->unit);
	format_change(by, sizeof(by), change(&whole), type->unit);
	printf("%s: %s before, %s after%s, %s (%+.2f %%)\n", type->type, before, after,
	       d->normalize ? " (scaled)" : "", by, percent(d, change(&whole)));
	printf("%11s %11s %12s %8s  %s\n", "before", "after", "change", "%", "function itself");
	for (struct function_growth *g = d->table; g && lines-- && change(g); g = g->hh.next)
		put_function(d, g, type->unit);
}

static void put_json(struct diff *d)
{
	const struct shstk_value_type *type = &d->profile->types[d->type - 1];
	struct json json = { .out = stdout };
	unsigned long lines = d->top;

	HASH_SORT(d->table, by_change);
	shstk_json_open(&json, NULL, '{');
	shstk_json_string(&json, "type", type->type);
	shstk_json_string(&json, "unit", type->unit);
	shstk_json_int(&json, "before", d->total[BEFORE]);
	shstk_json_int(&json, "after", d->total[AFTER]);
	shstk_json_bool(&json, "scaled", d->normalize);
	shstk_json_open(&json, "cautions", '[');
	for (size_t i = 0; i < d->profile->nr_cautions; i++)
		shstk_json_string(&json, NULL, d->profile->cautions[i]);
	shstk_json_close(&json);
	shstk_json_open(&json, "functions", '[');
	for (struct function_growth *g = d->table; g && lines-- && change(g); g = g->hh.next) {
		shstk_json_open(&json, NULL, '{');
		shstk_json_string(&json, "function", g->name);
		shstk_json_int(&json, "before", g->self[BEFORE]);
		shstk_json_int(&json, "after", g->self[AFTER]);
		shstk_json_close(&json);
	}
	shstk_json_close(&json);
	shstk_json_close(&json);
}

static bool grew_too_much(const struct diff *d)
{
	const struct function_growth whole = { .self = { d->total[BEFORE], d->total[AFTER] } };
	bool grew = false;

	if (d->most < 0)
		return false;
	if (percent(d, change(&whole)) > d->most) {
		complain("the total grew by %.2f %%", percent(d, change(&whole)));
		grew = true;
	}
	for (const struct function_growth *g = d->table; g; g = g->hh.next) {
		if (percent(d, change(g)) <= d->most)
			continue;
		complain("%s grew by %.2f %% of the total", g->name, percent(d, change(g)));
		grew = true;
	}
	return grew;
}

/*
 * Returns whether a format shows both profiles beside each other. The others get one profile with
 * negative values.
 */
static bool shows_sides(const char *format)
{
	return !strcmp(format, "html") || !strcmp(format, "svg") || !strcmp(format, "folded");
}

static int check_output(struct diff *d)
{
	char err[512];

	if (!d->output)
		return EXIT_OK;
	if (!strcmp(d->output, "-")) {
		complain("differences cannot be written to standard output: the table goes there");
		return EXIT_USAGE;
	}
	d->format = shstk_format_find(NULL, d->output);
	if (!d->format ||
	    !(shows_sides(d->format) || !strcmp(d->format, "pprof") || !strcmp(d->format, "pb"))) {
		complain(
			"'%s': differences can only be written to a .html, .svg, .folded, .pb.gz or .pb file",
			d->output);
		return EXIT_USAGE;
	}
	if (!shstk_profile_check(d->output, NULL, err, sizeof(err)))
		return EXIT_OK;
	complain("%s", err);
	return EXIT_FAILED;
}

/* Returns whether a file is read more than once. */
static bool reads_twice(const struct diff *d, enum side side)
{
	return (d->normalize && side == AFTER) || (d->format && shows_sides(d->format));
}

static int check_inputs(const struct diff *d)
{
	for (int side = BEFORE; side <= AFTER; side++) {
		if (strcmp(d->paths[side], "-") || !reads_twice(d, side))
			continue;
		complain(
			"standard input can be read once only: with --normalize the second file, and for .html, .svg and .folded both, have to be files");
		return EXIT_USAGE;
	}
	return EXIT_OK;
}

static int make_profile(struct diff *d)
{
	struct shstk_symbols_opts opts = { .no_servers = true };
	int err;

	read_limit_apply(&d->read_limit, &opts);
	err = shstk_symbols_create(&opts, &d->symbols);
	if (!err)
		err = shstk_profile_create(d->symbols, &d->profile);
	if (err)
		complain("%s", strerror(-err));
	return err ? EXIT_FAILED : EXIT_OK;
}

static int write_profile(const struct diff *d, struct shstk_profile *profile,
			 const struct shstk_write_opts *opts)
{
	char err[512];

	if (!shstk_profile_write(profile, d->output, NULL, opts, err, sizeof(err)))
		return EXIT_OK;
	complain("%s", err);
	return EXIT_FAILED;
}

/* Writes both profiles, each read by itself. Returns an exit status. */
static int write_sides(struct diff *d)
{
	const double *scale = d->normalize ? d->scale : NULL;
	struct shstk_write_opts opts = { .type = d->type };
	struct shstk_profile *before = NULL, *after = NULL;
	char *title = NULL;
	int status;

	if (asprintf(&title, "%s to %s", d->paths[BEFORE], d->paths[AFTER]) < 0)
		title = NULL;
	status = side_read(d->symbols, d->paths[BEFORE], &d->filter, NULL, &before);
	if (status == EXIT_OK)
		status = side_read(d->symbols, d->paths[AFTER], &d->filter, scale, &after);
	opts.title = title;
	opts.base = before;
	if (status == EXIT_OK)
		status = write_profile(d, after, &opts);
	shstk_profile_destroy(before);
	shstk_profile_destroy(after);
	free(title);
	return status;
}

static int write_output(struct diff *d)
{
	const struct shstk_write_opts opts = { .type = d->type };

	if (!d->output)
		return EXIT_OK;
	return shows_sides(d->format) ? write_sides(d) : write_profile(d, d->profile, &opts);
}

static int run(struct diff *d)
{
	int status = make_profile(d);

	if (status == EXIT_OK)
		status = read_side(d, BEFORE);
	if (status == EXIT_OK)
		status = filter_type(&d->filter, d->profile, &d->type);
	if (status == EXIT_OK && d->normalize)
		status = measure(d);
	if (status == EXIT_OK)
		status = read_side(d, AFTER);
	if (status == EXIT_OK && !filter_had_traces(&d->filter))
		status = EXIT_FAILED;
	if (status == EXIT_OK)
		status = write_output(d);
	if (status != EXIT_OK)
		return status;
	if (d->json)
		put_json(d);
	else
		put_table(d);
	status = end_output();
	if (status == EXIT_OK && grew_too_much(d))
		status = EXIT_GREW;
	return status;
}

static void deinit(struct diff *d)
{
	struct function_growth *g, *next;

	HASH_ITER(hh, d->table, g, next)
	{
		HASH_DEL(d->table, g);
		free(g);
	}
	shstk_profile_destroy(d->profile);
	shstk_symbols_destroy(d->symbols);
	filter_deinit(&d->filter);
	free(d->labels);
}

int cmd_diff(int argc, char **argv)
{
	struct diff d = { .most = -1, .top = DEFAULT_TOP };
	int status;

	command_parse(&diff_argp, argc, argv, &d);
	status = check_output(&d);
	if (status == EXIT_OK)
		status = check_inputs(&d);
	if (status == EXIT_OK)
		status = run(&d);
	deinit(&d);
	return status;
}
