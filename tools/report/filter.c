// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which samples of a profile are taken. See filter.h.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "libshstk/symbol/export.h"
#include "tools/report/filter.h"
#include "tools/shstk.h"

enum {
	OPT_FOCUS = 1024 + 512,
	OPT_IGNORE,
	OPT_THREAD,
	OPT_COMM,
	OPT_TID,
	OPT_FRAMES_ONLY,
	OPT_TYPE,
};

static const struct argp_option options[] = {
	{ "focus", OPT_FOCUS, "REGEX", 0, "only stacks with a function whose name matches", 0 },
	{ "ignore", OPT_IGNORE, "REGEX", 0, "no stacks with a function whose name matches", 0 },
	{ "thread", OPT_THREAD, "REGEX", 0, "only threads whose name matches", 0 },
	{ "comm", OPT_COMM, "REGEX", 0, "the same", 0 },
	{ "pid", 'p', "N", 0, "only samples of this process", 0 },
	{ "tid", OPT_TID, "N", 0, "only samples of this thread", 0 },
	{ "frames-only", OPT_FRAMES_ONLY, NULL, 0,
	  "the first name of folded stacks is a function, not a thread", 0 },
	{ "type", OPT_TYPE, "NAME", 0, "show this kind of values, where there are several", 0 },
	{ 0 },
};

static void set_pattern(const struct argp_state *state, struct pattern *pattern, const char *text)
{
	char why[256];
	int err;

	if (pattern->set)
		regfree(&pattern->regex);
	err = regcomp(&pattern->regex, text, REG_EXTENDED | REG_NOSUB);
	pattern->set = !err;
	if (!err)
		return;
	regerror(err, &pattern->regex, why, sizeof(why));
	argp_failure(state, argp_err_exit_status, 0, "'%s' is no regular expression: %s", text,
		     why);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct filter *f = state->input;

	switch (key) {
	case OPT_FOCUS:
		set_pattern(state, &f->focus, arg);
		return 0;
	case OPT_IGNORE:
		set_pattern(state, &f->ignore, arg);
		return 0;
	case OPT_THREAD:
	case OPT_COMM:
		set_pattern(state, &f->thread, arg);
		return 0;
	case 'p':
		f->pid = parse_number(state, "pid", arg, 1, INT_MAX);
		return 0;
	case OPT_TID:
		f->tid = parse_number(state, "tid", arg, 1, INT_MAX);
		return 0;
	case OPT_FRAMES_ONLY:
		f->frames_only = true;
		return 0;
	case OPT_TYPE:
		f->type = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp filter_argp = {
	.options = options,
	.parser = parse,
};

static bool any_frame(const struct pattern *pattern, const struct shstk_symbol *symbol)
{
	for (unsigned int i = 0; i < symbol->nr; i++)
		if (!regexec(&pattern->regex, symbol->frames[i].function, 0, NULL, 0))
			return true;
	return false;
}

/* Each location is compared once. Without memory it is compared again. */
static bool location_matches(struct pattern *pattern, const struct shstk_profile *profile,
			     uint32_t i)
{
	const struct shstk_symbol *symbol = shstk_location_symbol(profile, profile->locations[i]);

	if (i >= pattern->nr) {
		size_t nr = profile->max_locations;
		uint8_t *more = realloc(pattern->known, nr);

		if (!more)
			return any_frame(pattern, symbol);
		memset(more + pattern->nr, 0, nr - pattern->nr);
		pattern->known = more;
		pattern->nr = nr;
	}
	if (!pattern->known[i])
		pattern->known[i] = 1 + any_frame(pattern, symbol);
	return pattern->known[i] == 2;
}

static bool stack_matches(struct pattern *pattern, const struct shstk_profile *profile,
			  const struct shstk_sample *sample)
{
	for (unsigned int i = 0; i < sample->nr; i++)
		if (location_matches(pattern, profile, sample->locations[i]))
			return true;
	return false;
}

bool filter_takes(struct filter *f, const struct shstk_profile *profile,
		  const struct shstk_sample *sample)
{
	const char *comm = sample->comm ? sample->comm : "";

	if (f->pid && shstk_symproc_pid(sample->proc) != (int)f->pid)
		return false;
	if (f->tid && sample->tid != (int)f->tid)
		return false;
	if (f->thread.set && regexec(&f->thread.regex, comm, 0, NULL, 0))
		return false;
	if (f->focus.set && !stack_matches(&f->focus, profile, sample))
		return false;
	return !f->ignore.set || !stack_matches(&f->ignore, profile, sample);
}

static void pattern_deinit(struct pattern *pattern)
{
	if (pattern->set)
		regfree(&pattern->regex);
	free(pattern->known);
}

void filter_deinit(struct filter *f)
{
	pattern_deinit(&f->focus);
	pattern_deinit(&f->ignore);
	pattern_deinit(&f->thread);
}

int filter_type(const struct filter *f, const struct shstk_profile *profile, unsigned int *ret)
{
	char list[512] = "";
	size_t len = 0;

	*ret = shstk_profile_find_type(profile, f->type);
	if (*ret || !f->type)
		return EXIT_OK;
	for (unsigned int i = 0; i < profile->nr_types && len < sizeof(list); i++)
		len += snprintf(list + len, sizeof(list) - len, "%s%s", i ? ", " : "",
				profile->types[i].type);
	complain("there are no values of type '%s'; there are: %s", f->type, list);
	return EXIT_USAGE;
}
