// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * shstk unwind - makes a profile from what `perf record` wrote, of copies of stacks or of
 * callchains.
 *
 * The records of the file are handed to tools/convert/convert.h in the order of time. The code here
 * decides where the files of the mappings are: on this machine, or below a folder. The modules of a
 * process are read only once the process has a sample.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libshstk/symbol/profile.h"
#include "tools/convert/file.h"
#include "tools/convert/recorded_files.h"
#include "tools/output.h"
#include "tools/perf/data.h"
#include "tools/read_limit.h"
#include "tools/shstk.h"

#define MAX_DEPTH 4096

struct unwind {
	struct output output;
	const char *path;
	const char *event_name;
	const char *sysroot;
	unsigned long depth;
	bool fold;
	struct read_limit read_limit;
	bool quiet;

	struct perfdata *pd;
	const struct perfdata_event *event;
	struct past past;
	struct shstk_symbols *symbols;
	struct shstk_profile *profile;
	struct converter *convert;
	struct convert_file file;
};

enum {
	OPT_EVENT = 256,
	OPT_SYSROOT,
	OPT_DEPTH,
};

static const struct argp_option options[] = {
	{ "event", OPT_EVENT, "NAME", 0,
	  "take the samples of this event, if there are several (the first one that has stacks)",
	  0 },
	{ "sysroot", OPT_SYSROOT, "DIR", 0, "look for the mapped files below DIR", 0 },
	{ "depth", OPT_DEPTH, "N", 0, "most frames of a stack, 1 to 4096 (1024)", 0 },
	READ_LIMIT_OPTION,
	{ "quiet", 'q', NULL, 0, "no summary", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct unwind *u = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &u->output;
		return 0;
	case ARGP_KEY_ARG:
		if (u->path)
			argp_failure(state, EXIT_USAGE, 0, "unexpected argument '%s'", arg);
		u->path = arg;
		return 0;
	case OPT_EVENT:
		u->event_name = arg;
		return 0;
	case READ_LIMIT_OPT:
		read_limit_parse(state, arg, &u->read_limit);
		return 0;
	case OPT_SYSROOT:
		u->sysroot = arg;
		return 0;
	case OPT_DEPTH:
		u->depth = parse_number(state, "depth", arg, 1, MAX_DEPTH);
		u->fold = false;
		return 0;
	case 'q':
		u->quiet = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {
	{ &output_argp, 0, NULL, 0 },
	{ 0 },
};

const struct argp unwind_argp = {
	.options = options,
	.parser = parse,
	.children = children,
	.args_doc = "[FILE]",
	.doc = "Unwind the stacks in FILE (perf.data), recorded by `perf record --call-graph dwarf`, or take its callchains (`perf record -g`), and write a profile. FILE may be -: what `perf record -o -` writes."
	       "\v"
	       "The profile holds what user space did; frames of the kernel are "
	       "left out. Files are taken from this machine, or below a folder "
	       "given by --sysroot, if their build ids are those that perf noted.",
};

/* ---- Conversion ---- */

/*
 * Returns which stacks of an event can be used: 2 for copies, 1 for callchains, 0 for none. Copies
 * are better, since their stacks are complete.
 */
static int usable(const struct perfdata_event *e)
{
	return e->has_stacks ? 2 : e->has_chains;
}

/*
 * Returns the event that was asked for, or the first of those with the best stacks; NULL if there
 * is none.
 */
static const struct perfdata_event *find_event(const struct unwind *u)
{
	const struct perfdata_event *best = NULL;

	for (unsigned int i = 0; i < u->pd->nr_events; i++) {
		const struct perfdata_event *e = &u->pd->events[i];

		if (u->event_name && !strcmp(e->name, u->event_name))
			return e;
		if (!u->event_name && usable(e) > (best ? usable(best) : 0))
			best = e;
	}
	return best;
}

static int choose_event(struct unwind *u)
{
	static const char missing[] = "no copies of the stack, and no callchains";
	static const char cure[] = "record with perf record --call-graph dwarf, or -g";
	const char *path = u->pd->path;

	u->event = find_event(u);
	if (u->event && usable(u->event))
		return 0;
	if (u->event)
		complain("event %s of %s has %s: %s", u->event->name, path, missing, cure);
	else if (u->event_name)
		complain("%s has no event '%s'; the first one is %s", path, u->event_name,
			 u->pd->events[0].name);
	else
		complain("%s has %s: %s", path, missing, cure);
	return -ENODATA;
}

static int begin_conversion(struct unwind *u)
{
	const struct convert_opts how = {
		.source = convert_file_source(u->event),
		.kernel = KERNEL_NEVER,
		.depth = u->depth,
		.fold = u->fold,
		.labels = output_wants_labels(&u->output),
		.keep_times = output_wants_times(&u->output),
	};

	u->convert = converter_create(&how, u->symbols, u->profile, &u->past.files);
	return u->convert ? 0 : -ENOMEM;
}

static int make_profile(struct unwind *u)
{
	const struct perfdata_event *e = u->event;
	const char *type = e->nanoseconds ? "cpu" : e->name;
	const char *unit = e->nanoseconds ? "nanoseconds" : "count";
	uint64_t period = e->period;
	struct shstk_symbols_opts opts = {
		.no_lines = !output_wants_lines(&u->output),
		.full_names = u->output.full_names,
	};
	char *dirs = NULL;
	int err;

	if (u->sysroot && asprintf(&dirs, "%s/usr/lib/debug:/usr/lib/debug", u->sysroot) < 0)
		return -ENOMEM;
	opts.debug_dirs = dirs;
	read_limit_apply(&u->read_limit, &opts);
	if (e->freq)
		period = e->nanoseconds && period ? 1000000000 / period : 1;
	err = output_begin(&opts, type, unit, period, &u->symbols, &u->profile);
	free(dirs);
	if (!err)
		err = output_keep(&u->output, u->profile, u->pd->path);
	if (err)
		return err;
	return begin_conversion(u);
}

static unsigned long long count(uint64_t n)
{
	return n;
}

/* Prints a line, and keeps it in the profile by @keep. */
static void say(struct unwind *u, int (*keep)(struct shstk_profile *profile, const char *text),
		const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void say(struct unwind *u, int (*keep)(struct shstk_profile *profile, const char *text),
		const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	if (!text)
		return;
	complain("%s: %s", u->pd->path, text);
	keep(u->profile, text);
	free(text);
}

/* Reports stacks whose outer part does not come from their copy. */
static void report_outer(struct unwind *u, uint64_t nr, enum outer_source by)
{
	if (nr)
		say(u, shstk_profile_comment, "%llu of %llu stacks %s", count(nr),
		    count(u->convert->counts.samples), outer_words(by));
}

/* Reports stacks that are not complete, or whose parts come from different sources. */
static void report_stacks(struct unwind *u)
{
	const struct convert_counts *c = &u->convert->counts;

	if (!u->event->has_stacks)
		say(u, shstk_profile_comment,
		    "stacks are the callchains that the kernel took: those of code without frame pointers may lack frames");
	if (c->cut)
		say(u, shstk_profile_comment,
		    "%llu callchains were cut, see kernel.perf_event_max_stack", count(c->cut));
	if (c->compat)
		say(u, shstk_profile_comment, "%llu samples of 32-bit code followed frame pointers",
		    count(c->compat));
	if (c->too_short)
		say(u, shstk_profile_comment,
		    "%llu stacks continue beyond the piece that was copied: record with a larger perf record --call-graph dwarf,SIZE",
		    count(c->too_short));
	if (c->elsewhere)
		say(u, shstk_profile_comment, "%llu stacks " UNWOUND_ELSEWHERE,
		    count(c->elsewhere));
	if (c->folded)
		say(u, shstk_profile_comment, "%llu stacks " CONVERT_FOLDED, count(c->folded));
	if (c->interpreted)
		say(u, shstk_profile_comment, "%llu of %llu stacks " CONVERT_INTERPRETED,
		    count(c->interpreted), count(c->samples), c->interpreter);
	report_outer(u, c->continued, OUTER_BEFORE);
	report_outer(u, c->chained, OUTER_CALLCHAIN);
}

/* Reports what the profile does not hold, each in one line. */
static void report_gaps(struct unwind *u)
{
	const char *path = u->pd->path;

	if (u->pd->cut)
		say(u, shstk_profile_caution,
		    "the file is cut off or was not finished: the records up to there are unwound");
	if (u->pd->damaged)
		say(u, shstk_profile_caution, "%llu records make no sense", count(u->pd->damaged));
	if (u->file.lost)
		say(u, shstk_profile_caution, "perf lost %llu records", count(u->file.lost));
	if (u->file.others)
		say(u, shstk_profile_comment,
		    "%llu samples of other events than %s left out, see --event",
		    count(u->file.others), u->event->name);
	if (u->file.compat)
		say(u, shstk_profile_caution, "%llu samples of 32-bit code left out",
		    count(u->file.compat));
	report_stacks(u);
	if (!u->convert->counts.samples)
		complain("%s has no samples of user space", path);
}

static void report_done(const struct unwind *u)
{
	const struct convert_counts *c = &u->convert->counts;
	char *names = output_names(&u->output);

	if (!u->quiet)
		complain("%llu samples of %s, %llu stacks complete, %llu of the kernel only;%s",
			 count(c->samples), u->event->name, count(c->samples - c->truncated),
			 count(u->file.without), names ? names : "");
	free(names);
}

static void note(struct unwind *u)
{
	char *text = NULL;

	if (asprintf(&text, "unwound from %s, event %s", u->pd->path, u->event->name) < 0)
		return;
	shstk_profile_comment(u->profile, text);
	free(text);
	shstk_profile_set_time(u->profile, 0, u->file.last - u->file.first);
}

/* Hands the records of the file to the converter. Returns 0 or a negative errno. */
static int convert(struct unwind *u)
{
	int err = make_profile(u);

	if (err)
		return err;
	u->file = (struct convert_file){
		.pd = u->pd,
		.event = u->event,
		.convert = u->convert,
	};
	return convert_file(&u->file);
}

static int write_profile(struct unwind *u)
{
	note(u);
	report_gaps(u);
	output_name(&u->output, u->symbols, u->profile);
	if (!output_write(&u->output, u->profile, u->pd->path))
		return -EIO;
	report_done(u);
	return 0;
}

static int run(struct unwind *u)
{
	int err;

	if (!u->pd->arch) {
		complain(
			"%s was recorded on %s, which is not supported: only x86_64 and aarch64 are",
			u->pd->path, u->pd->machine);
		return -EOPNOTSUPP;
	}
	err = choose_event(u);
	if (err)
		return err;
	err = past_init(&u->past, u->pd, u->sysroot);
	if (err) {
		complain("cannot open folder %s: %s", u->sysroot, strerror(-err));
		return err;
	}
	err = convert(u);
	if (err) {
		complain("cannot unwind %s: %s", u->pd->path, strerror(-err));
		return err;
	}
	return write_profile(u);
}

static void cleanup(struct unwind *u)
{
	converter_destroy(u->convert);
	output_keep_drop(&u->output);
	shstk_profile_destroy(u->profile);
	shstk_symbols_destroy(u->symbols);
	past_deinit(&u->past);
	perfdata_close(u->pd);
}

int cmd_unwind(int argc, char **argv)
{
	struct unwind u = {
		.depth = 1024,
		.fold = true,
		.past.images.root = -1,
		.output.streams = true,
	};
	struct reason why;
	int err;

	command_parse(&unwind_argp, argc, argv, &u);
	err = output_check(&u.output, EXIT_FAILED);
	if (err)
		return err;
	err = perfdata_open(u.path ? u.path : "perf.data", &u.pd, &why);
	if (err) {
		complain("%s", why.text);
		return EXIT_FAILED;
	}
	err = run(&u);
	cleanup(&u);
	return err ? EXIT_FAILED : EXIT_OK;
}
