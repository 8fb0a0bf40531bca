// SPDX-License-Identifier: GPL-2.0-or-later
/* filter.c - which samples of a profile are taken, as filter.h describes. */
#include <ctype.h>
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
	OPT_CGROUP,
	OPT_TRACE,
	OPT_TIME,
	OPT_FRAMES_ONLY,
	OPT_TYPE,
	OPT_CALLERS_OF,
	OPT_CALLEES_OF,
};

static const struct argp_option options[] = {
	{ "focus", OPT_FOCUS, "REGEX", 0, "only stacks with a function whose name matches", 0 },
	{ "ignore", OPT_IGNORE, "REGEX", 0, "no stacks with a function whose name matches", 0 },
	{ "callers-of", OPT_CALLERS_OF, "REGEX", 0,
	  "who calls the functions whose names match: stacks from the innermost of them outwards",
	  0 },
	{ "callees-of", OPT_CALLEES_OF, "REGEX", 0,
	  "what the functions whose names match call: stacks from the outermost of them inwards",
	  0 },
	{ "thread", OPT_THREAD, "REGEX", 0, "only threads whose name matches", 0 },
	{ "comm", OPT_COMM, "REGEX", 0, "another name of --thread", 0 },
	{ "pid", 'p', "N", 0, "only samples of this process", 0 },
	{ "cgroup", OPT_CGROUP, "REGEX", 0, "only samples whose control group or container matches",
	  0 },
	{ "trace", OPT_TRACE, "ID", 0,
	  "only samples of the trace with this id, 32 hexadecimal digits", 0 },
	{ "time", OPT_TIME, "FROM-TO", 0,
	  "only samples of this time since the recording began: 3s-4s, 500ms-, -2m", 0 },
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
	argp_failure(state, argp_err_exit_status, 0, "'%s' is not a regular expression: %s", text,
		     why);
}

/*
 * Parses a time with a unit, in seconds without one, up to @end. Returns it in ns, or -1 if it is
 * none.
 */
static double parse_moment(const char *text, char **end)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "ms", 1e6 }, { "us", 1e3 }, { "s", 1e9 }, { "m", 60e9 }, { "h", 3600e9 } };
	double value = strtod(text, end);

	if (*end == text || !(value >= 0))
		return -1;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (strncmp(*end, units[i].name, strlen(units[i].name)))
			continue;
		*end += strlen(units[i].name);
		return value * units[i].ns;
	}
	return value * 1e9;
}

static void set_time(const struct argp_state *state, struct filter *f, const char *text)
{
	char *end = (char *)text;
	double from = *text == '-' ? 0 : parse_moment(text, &end), to = 0x1p63;
	bool good = from >= 0 && from < to && *end == '-';

	if (good && end[1]) {
		to = parse_moment(end + 1, &end);
		good = to > from && to <= 0x1p63 && !*end;
	}
	if (!good)
		argp_failure(state, argp_err_exit_status, 0,
			     "time '%s' is no range such as 3s-4s, 500ms- or -2m", text);
	f->timed = true;
	f->from = good ? from : 0;
	f->to = good ? to : 0;
}

static void set_trace(const struct argp_state *state, struct filter *f, const char *text)
{
	const size_t size = sizeof(f->trace) - 1;

	if (strlen(text) != size || strspn(text, "0123456789abcdefABCDEF") != size) {
		argp_failure(state, argp_err_exit_status, 0,
			     "trace '%s' is no id of 32 hexadecimal digits", text);
		return;
	}
	for (size_t i = 0; i < size; i++)
		f->trace[i] = tolower((unsigned char)text[i]);
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
	case OPT_CALLERS_OF:
		set_pattern(state, &f->callers_of, arg);
		return 0;
	case OPT_CALLEES_OF:
		set_pattern(state, &f->callees_of, arg);
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
	case OPT_CGROUP:
		set_pattern(state, &f->cgroup, arg);
		return 0;
	case OPT_TRACE:
		set_trace(state, f, arg);
		return 0;
	case OPT_TIME:
		set_time(state, f, arg);
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

static bool frame_matches(const struct pattern *pattern, const struct shstk_symframe *frame)
{
	return !regexec(&pattern->regex, frame->function, 0, NULL, 0);
}

static bool any_frame(const struct pattern *pattern, const struct shstk_symbol *symbol)
{
	for (unsigned int i = 0; i < symbol->nr; i++)
		if (frame_matches(pattern, &symbol->frames[i]))
			return true;
	return false;
}

/*
 * Makes room for the results of all locations of the profile. Returns false when memory runs out.
 */
static bool make_room(struct pattern *pattern, const struct shstk_profile *profile)
{
	size_t nr = profile->max_locations;
	uint8_t *known = realloc(pattern->known, nr);
	uint32_t *cut;

	if (known)
		pattern->known = known;
	cut = known ? reallocarray(pattern->cut, nr, sizeof(*cut)) : NULL;
	if (!cut)
		return false;
	pattern->cut = cut;
	memset(known + pattern->nr, 0, nr - pattern->nr);
	memset(cut + pattern->nr, 0, (nr - pattern->nr) * sizeof(*cut));
	pattern->nr = nr;
	return true;
}

/*
 * Returns whether a function of a location matches. Each location is compared once; without memory
 * for the result it is compared each time.
 */
static bool location_matches(struct pattern *pattern, const struct shstk_profile *profile,
			     uint32_t i)
{
	const struct shstk_symbol *symbol = shstk_location_symbol(profile, profile->locations[i]);

	if (i >= pattern->nr && !make_room(pattern, profile))
		return any_frame(pattern, symbol);
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

/*
 * Gives the sample a copy of its stack, which may be changed. Returns false when memory runs out.
 */
static bool copy_stack(struct filter *f, struct shstk_sample *sample)
{
	if (sample->nr > f->max_stack) {
		uint32_t *more = reallocarray(f->stack, sample->nr, sizeof(*more));

		if (!more)
			return false;
		f->stack = more;
		f->max_stack = sample->nr;
	}
	memmove(f->stack, sample->locations, sample->nr * sizeof(*f->stack));
	sample->locations = f->stack;
	return true;
}

/*
 * Leaves only @nr functions from @first on of entry @i of the stack, which matches. That needs a
 * location of its own, as other functions are inlined at that address. Returns false when memory
 * runs out.
 */
static bool cut_entry(struct filter *f, struct pattern *pattern, struct shstk_profile *profile,
		      uint32_t i, unsigned int first, unsigned int nr)
{
	const uint32_t whole = f->stack[i];
	const struct shstk_location *location = profile->locations[whole];
	const struct shstk_symbol *symbol = shstk_location_symbol(profile, location);
	const struct shstk_named named = {
		.map = symbol->map,
		.address = location->pc,
		.nr = nr,
		.frames = symbol->frames + first,
	};

	if (nr == symbol->nr)
		return true;
	if (whole < pattern->nr && pattern->cut[whole]) {
		f->stack[i] = pattern->cut[whole] - 1;
		return true;
	}
	if (shstk_profile_name(profile, &named, &f->stack[i]))
		return false;
	if (whole < pattern->nr)
		pattern->cut[whole] = f->stack[i] + 1;
	return true;
}

/*
 * Keeps the stack from the innermost function that matches outwards. Returns false if there is
 * none, or memory runs out.
 */
static bool cut_callees(struct filter *f, struct shstk_profile *profile,
			struct shstk_sample *sample)
{
	const struct shstk_symbol *symbol;
	unsigned int i = 0, k = 0;

	while (i < sample->nr && !location_matches(&f->callers_of, profile, sample->locations[i]))
		i++;
	if (i == sample->nr || !copy_stack(f, sample))
		return false;
	symbol = shstk_location_symbol(profile, profile->locations[f->stack[i]]);
	while (!frame_matches(&f->callers_of, &symbol->frames[k]))
		k++;
	if (!cut_entry(f, &f->callers_of, profile, i, k, symbol->nr - k))
		return false;
	sample->locations += i;
	sample->nr -= i;
	return true;
}

/*
 * Keeps the stack from the outermost function that matches inwards, without the note above it.
 * Returns false if there is none, or memory runs out.
 */
static bool cut_callers(struct filter *f, struct shstk_profile *profile,
			struct shstk_sample *sample)
{
	const struct shstk_symbol *symbol;
	unsigned int i = sample->nr, k;

	while (i && !location_matches(&f->callees_of, profile, sample->locations[i - 1]))
		i--;
	if (!i || !copy_stack(f, sample))
		return false;
	symbol = shstk_location_symbol(profile, profile->locations[f->stack[i - 1]]);
	for (k = symbol->nr; !frame_matches(&f->callees_of, &symbol->frames[k - 1]);)
		k--;
	if (!cut_entry(f, &f->callees_of, profile, i - 1, 0, k))
		return false;
	sample->nr = i;
	sample->note = SHSTK_NOTE_NONE;
	return true;
}

/* Returns the value of a sample's label, or NULL. */
static const char *label_of(const struct shstk_sample *sample, const char *key)
{
	const char *at = sample->labels, *end = at + sample->labels_size;

	for (const char *value; at && at < end; at = value + strlen(value) + 1) {
		value = at + strlen(at) + 1;
		if (value >= end)
			break;
		if (!strcmp(at, key))
			return value;
	}
	return NULL;
}

static bool group_matches(const struct filter *f, const struct shstk_sample *sample)
{
	const char *group = label_of(sample, "cgroup"), *container = label_of(sample, "container");

	return (group && !regexec(&f->cgroup.regex, group, 0, NULL, 0)) ||
	       (container && !regexec(&f->cgroup.regex, container, 0, NULL, 0));
}

static bool trace_matches(struct filter *f, const struct shstk_sample *sample)
{
	const char *trace = label_of(sample, "trace_id");

	f->traced |= trace != NULL;
	return trace && !strcmp(trace, f->trace);
}

/* Returns whether something was at a time of the range; @time: 0 if that is not known. */
static bool time_matches(struct filter *f, const struct shstk_profile *profile, uint64_t time)
{
	uint64_t origin = shstk_profile_origin(profile), since;

	if (!time) {
		f->untimed = true;
		return false;
	}
	if (!f->origin)
		f->origin = time;
	origin = origin ? origin : f->origin;
	since = time > origin ? time - origin : 0;
	return since >= f->from && since < f->to;
}

void filter_next_file(struct filter *f)
{
	f->origin = 0;
}

bool filter_had_times(const struct filter *f, const char *path)
{
	if (f->untimed)
		complain(
			"%s has no times of samples, which --time needs: record with -o FILE.shstk",
			path);
	return !f->untimed;
}

bool filter_had_traces(const struct filter *f)
{
	const bool ret = !*f->trace || f->traced;

	if (!ret)
		complain(
			"no sample has a trace id, which --trace needs: shstk-record(1) says under TRACES which recordings have them");
	return ret;
}

bool filter_takes(struct filter *f, struct shstk_profile *profile, struct shstk_sample *sample)
{
	const char *comm = sample->comm ? sample->comm : "";

	if (*f->trace && !trace_matches(f, sample))
		return false;
	if (f->pid && shstk_symproc_pid(sample->proc) != (int)f->pid)
		return false;
	if (f->tid && sample->tid != (int)f->tid)
		return false;
	if (f->timed && !time_matches(f, profile, sample->time))
		return false;
	if (f->cgroup.set && !group_matches(f, sample))
		return false;
	if (f->thread.set && regexec(&f->thread.regex, comm, 0, NULL, 0))
		return false;
	if (f->focus.set && !stack_matches(&f->focus, profile, sample))
		return false;
	if (f->ignore.set && stack_matches(&f->ignore, profile, sample))
		return false;
	if (f->callees_of.set && !cut_callers(f, profile, sample))
		return false;
	return !f->callers_of.set || cut_callees(f, profile, sample);
}

bool filter_takes_life(struct filter *f, const struct shstk_profile *profile,
		       const struct shstk_life *life)
{
	if (f->pid && life->pid != (int)f->pid)
		return false;
	return !f->timed || time_matches(f, profile, life->time);
}

static void pattern_deinit(struct pattern *pattern)
{
	if (pattern->set)
		regfree(&pattern->regex);
	free(pattern->known);
	free(pattern->cut);
}

static struct pattern *stack_pattern(struct filter *f, size_t i)
{
	struct pattern *const patterns[] = { &f->focus, &f->ignore, &f->callers_of,
					     &f->callees_of };

	return i < sizeof(patterns) / sizeof(*patterns) ? patterns[i] : NULL;
}

void filter_fork(struct filter *copy)
{
	struct pattern *pattern;

	for (size_t i = 0; (pattern = stack_pattern(copy, i)); i++) {
		pattern->known = NULL;
		pattern->cut = NULL;
		pattern->nr = 0;
	}
	copy->stack = NULL;
	copy->max_stack = 0;
}

void filter_forget(struct filter *copy)
{
	struct pattern *pattern;

	for (size_t i = 0; (pattern = stack_pattern(copy, i)); i++) {
		free(pattern->known);
		free(pattern->cut);
	}
	free(copy->stack);
}

void filter_deinit(struct filter *f)
{
	pattern_deinit(&f->focus);
	pattern_deinit(&f->ignore);
	pattern_deinit(&f->thread);
	pattern_deinit(&f->cgroup);
	pattern_deinit(&f->callers_of);
	pattern_deinit(&f->callees_of);
	free(f->stack);
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
