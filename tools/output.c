// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Writing profiles as the options say. See output.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/output.h"
#include "tools/shstk.h"

enum {
	OPT_FORMAT = 512,
	OPT_PER_THREAD,
	OPT_TOP,
};

static const struct argp_option options[] = {
	{ "output", 'o', "FILE", 0, "write the profile to FILE (" OUTPUT_DEFAULT
	  "); the suffix chooses the format: .pb.gz .folded .svg .perf .txt; may be repeated", 0 },
	{ "format", OPT_FORMAT, "NAME", 0, "pprof, folded, svg, perf or top, whatever the suffix", 0 },
	{ "per-thread", OPT_PER_THREAD, NULL, 0, "keep threads apart in flame graphs and folded stacks", 0 },
	{ "top", OPT_TOP, "N", OPTION_ARG_OPTIONAL, "print the N (20) hottest functions at the end", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct output *o = state->input;

	switch (key) {
	case 'o':
		if (o->nr == OUTPUT_MAX)
			argp_failure(state, argp_err_exit_status, 0,
				     "more than %d outputs", OUTPUT_MAX);
		o->paths[o->nr++] = arg;
		return 0;
	case OPT_FORMAT:
		o->format = arg;
		return 0;
	case OPT_PER_THREAD:
		o->per_thread = true;
		return 0;
	case OPT_TOP:
		o->top = arg ? parse_number(state, "top", arg, 1, 100000) : 20;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp output_argp = {
	.options = options,
	.parser = parse,
};

/* Better now than after an hour of recording. */
bool output_check(struct output *o)
{
	char err[512];

	if (o->format && !shstk_format_find(o->format, NULL)) {
		complain("unknown format '%s'; known are %s", o->format,
			 shstk_format_list());
		return false;
	}
	if (!o->nr)
		o->paths[o->nr++] = OUTPUT_DEFAULT;
	for (unsigned int i = 0; i < o->nr; i++) {
		if (shstk_profile_check(o->paths[i], o->format, err,
					sizeof(err))) {
			complain("%s", err);
			return false;
		}
	}
	return true;
}

int output_begin(const struct shstk_symbols_opts *opts, const char *type,
		 const char *unit, uint64_t period,
		 struct shstk_symbols **symbols, struct shstk_profile **ret)
{
	int err = shstk_symbols_create(opts, symbols);

	if (!err)
		err = shstk_profile_create(*symbols, ret);
	if (!err)
		err = shstk_profile_add_type(*ret, "samples", "count");
	if (err >= 0)
		err = shstk_profile_add_type(*ret, type, unit);
	if (err >= 0)
		err = shstk_profile_set_period(*ret, type, unit, period);
	return err;
}

bool output_wants_times(const struct output *o)
{
	for (unsigned int i = 0; i < o->nr; i++) {
		const char *format = shstk_format_find(o->format, o->paths[i]);

		if (format && !strcmp(format, "perf"))
			return true;
	}
	return false;
}

bool output_write(const struct output *o, struct shstk_profile *profile,
		  const char *title)
{
	struct shstk_write_opts opts = {
		.title = title,
		.per_thread = o->per_thread,
		.top = o->top,
		.type = o->type,
	};
	bool ok = true;
	char err[512];

	for (unsigned int i = 0; i < o->nr; i++) {
		if (shstk_profile_write(profile, o->paths[i], o->format, &opts,
					err, sizeof(err))) {
			complain("%s", err);
			ok = false;
		}
	}
	if (o->top)
		shstk_profile_print(profile, stdout, "top", &opts);
	return ok;
}

char *output_names(const struct output *o)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	bool any = false;

	if (!out)
		return NULL;
	for (unsigned int i = 0; i < o->nr; i++) {
		if (!strcmp(o->paths[i], "-"))
			continue;
		fprintf(out, "%s %s", any ? "" : " wrote", o->paths[i]);
		any = true;
	}
	fclose(out);
	return text;
}
