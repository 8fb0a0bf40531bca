// SPDX-License-Identifier: GPL-2.0-or-later
/* output.c - write profiles as the options say. See output.h. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libshstk/symbol/json.h"
#include "libshstk/symbol/keep.h"
#include "libshstk/symbol/target.h"
#include "tools/output.h"
#include "tools/read_limit.h"
#include "tools/report/screen_name.h"
#include "tools/shstk.h"

#define DEFAULT_TOP 20
#define PAGE_TIMES (1 << 18) /* samples with a time of their own, in a page or a viewer */
#define MAX_OF_A_SECOND 1000 /* files of one name and one second: the number has three digits */

enum {
	OPT_FORMAT = 512,
	OPT_PER_THREAD,
	OPT_TOP,
	OPT_FULL_NAMES,
	OPT_SORT,
};

static const struct argp_option options[] = {
	{ "output", 'o', "FILE", 0,
	  "write it to FILE (" OUTPUT_DEFAULT
	  "); its suffix chooses the format: .pb.gz .pb .folded .svg .html .speedscope.json .firefox.json .trace.json .callgrind .perf .txt .json .shstk; - is standard output; may be repeated",
	  0 },
	{ "format", OPT_FORMAT, "FORMAT", 0,
	  "pprof, pb, folded, svg, html, speedscope, firefox, trace, callgrind, perf, top, json or shstk, whatever the suffix",
	  0 },
	{ "per-thread", OPT_PER_THREAD, NULL, 0,
	  "keep threads apart in flame graphs and folded stacks", 0 },
	{ "full-names", OPT_FULL_NAMES, NULL, 0,
	  "C++ names with the default arguments of the standard library's templates, and long ones in tables in full",
	  0 },
	{ "top", OPT_TOP, "N", OPTION_ARG_OPTIONAL, "print the N (20) hottest functions at the end",
	  0 },
	{ "sort", OPT_SORT, "WHICH", 0,
	  "the hottest functions are those with the highest values of their own (self), or with callees (total)",
	  0 },
	{ "json", 'j', NULL, 0, "print them as JSON; implies --top", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct output *o = state->input;

	switch (key) {
	case 'o':
		if (o->nr == OUTPUT_MAX)
			argp_failure(state, argp_err_exit_status, 0, "more than %d outputs",
				     OUTPUT_MAX);
		o->paths[o->nr++] = arg;
		return 0;
	case OPT_FORMAT:
		o->format = arg;
		return 0;
	case OPT_PER_THREAD:
		o->per_thread = true;
		return 0;
	case OPT_TOP:
		o->top = arg ? parse_number(state, "top", arg, 1, 100000) : DEFAULT_TOP;
		return 0;
	case OPT_FULL_NAMES:
		o->full_names = true;
		return 0;
	case OPT_SORT:
		if (strcmp(arg, "self") && strcmp(arg, "total"))
			argp_failure(state, argp_err_exit_status, 0,
				     "sort '%s' is neither self nor total", arg);
		o->by_total = !strcmp(arg, "total");
		return 0;
	case 'j':
		o->json = true;
		return 0;
	case ARGP_KEY_SUCCESS:
		if (o->json && !o->top)
			o->top = DEFAULT_TOP;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp output_argp = {
	.options = options,
	.parser = parse,
};

/*
 * Returns the format that suits standard output: for a file, the one of its suffix; for a terminal,
 * the table; for other programs, one line per stack, which all of them can read.
 */
static const char *stdout_format(void)
{
	const char *format = NULL;
	char path[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (isatty(STDOUT_FILENO))
		return "top";
	n = readlink("/proc/self/fd/1", path, sizeof(path) - 1);
	if (n > 0 && !fstat(STDOUT_FILENO, &st) && S_ISREG(st.st_mode)) {
		path[n] = '\0';
		format = shstk_format_find(NULL, path);
	}
	return format ? format : "folded";
}

static const char *choose_format(const struct output *o, const char *path)
{
	if (!o->format && !strcmp(path, "-"))
		return stdout_format();
	return shstk_format_find(o->format, path);
}

/* Finds the file that keeps all samples, of which there can be one. */
static int check_kept(struct output *o)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < o->nr; i++) {
		if (strcmp(o->formats[i], "shstk"))
			continue;
		o->kept = i;
		nr++;
	}
	if (nr < 2)
		return EXIT_OK;
	complain("more than one file of the format shstk: copy it, when it is written");
	return EXIT_USAGE;
}

/* Adds the file that is written if none is named: its suffix is that of the format. */
static void add_unnamed(struct output *o)
{
	int len;
	const char *suffix = shstk_format_suffix(o->format ? o->format : "pprof", &len);

	snprintf(o->unnamed, sizeof(o->unnamed), OUTPUT_STEM "%.*s", len, suffix);
	o->paths[o->nr++] = o->unnamed;
}

/* Returns whether a format would go to a terminal that cannot show it. */
static bool is_unreadable(const char *path, const char *format)
{
	static const char *const binary[] = { "pprof", "pb", "shstk" };

	for (size_t i = 0; i < sizeof(binary) / sizeof(*binary); i++)
		if (format && !strcmp(format, binary[i]))
			return !strcmp(path, "-") && isatty(STDOUT_FILENO);
	return false;
}

/* Errors are found here, and not after an hour of recording. */
int output_check(struct output *o, int failed)
{
	char err[512];

	if (o->format && !shstk_format_find(o->format, NULL)) {
		complain("unknown format '%s'; known are %s", o->format, shstk_format_list());
		return EXIT_USAGE;
	}
	if (!o->nr && !o->sent)
		add_unnamed(o);
	for (unsigned int i = 0; i < o->nr; i++) {
		o->formats[i] = choose_format(o, o->paths[i]);
		if (is_unreadable(o->paths[i], o->formats[i])) {
			complain(
				"the format %s is not text: name a file for it with -o, or pipe it",
				o->formats[i]);
			return EXIT_USAGE;
		}
		if (shstk_profile_check(o->paths[i], o->formats[i], err, sizeof(err))) {
			complain("%s", err);
			return o->formats[i] ? failed : EXIT_USAGE;
		}
	}
	return check_kept(o);
}

int output_begin(const struct shstk_symbols_opts *opts, const char *type, const char *unit,
		 uint64_t period, struct shstk_symbols **symbols, struct shstk_profile **ret)
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

/* Returns true if one of the outputs has this format. */
static bool wants(const struct output *o, const char *format)
{
	for (unsigned int i = 0; i < o->nr; i++)
		if (!strcmp(o->formats[i], format))
			return true;
	return false;
}

size_t output_wants_times(const struct output *o)
{
	if (wants(o, "perf") || (wants(o, "shstk") && !o->streams))
		return SIZE_MAX;
	return wants(o, "html") || wants(o, "speedscope") || wants(o, "firefox") ||
			       wants(o, "trace") ?
		       PAGE_TIMES :
		       0;
}

bool output_follows(const struct output *o)
{
	return output_wants_times(o) || wants(o, "shstk");
}

static bool wants_pprof(const struct output *o)
{
	return wants(o, "pprof") || wants(o, "pb");
}

bool output_wants_labels(const struct output *o)
{
	return o->sent || wants_pprof(o) || wants(o, "shstk") || wants(o, "html") ||
	       wants(o, "firefox") || wants(o, "trace");
}

bool output_wants_lines(const struct output *o)
{
	return o->sent || wants_pprof(o) || wants(o, "html") || wants(o, "speedscope") ||
	       wants(o, "firefox") || wants(o, "callgrind") || wants(o, "shstk");
}

static bool holds_something(const char *path)
{
	struct stat st;

	return strcmp(path, "-") && !stat(path, &st) && S_ISREG(st.st_mode) && st.st_size;
}

static bool keep_in(const char *dir, struct shstk_profile *profile, const char *format,
		    const struct shstk_write_opts *opts)
{
	const char *suffix;
	char *path, err[512];
	int fd, len, failed;

	suffix = shstk_format_suffix(format, &len);
	if (asprintf(&path, "%s/shstk-XXXXXX%.*s", dir, len, suffix) < 0)
		return false;
	fd = mkstemps(path, len);
	if (fd < 0) {
		free(path);
		return false;
	}
	close(fd);
	failed = shstk_profile_write(profile, path, format, opts, err, sizeof(err));
	if (failed)
		unlink(path);
	else
		complain("the profile is kept in %s", path);
	free(path);
	return !failed;
}

/* Keeps a profile that could not be written in some other folder: it cannot be recorded again. */
static void keep(struct shstk_profile *profile, const char *format,
		 const struct shstk_write_opts *opts)
{
	const char *const dirs[] = {
		getenv("TMPDIR"), "/var/tmp", "/tmp", getenv("HOME"), "/dev/shm",
	};

	if (shstk_profile_empty(profile))
		return;
	for (size_t i = 0; i < sizeof(dirs) / sizeof(*dirs); i++)
		if (dirs[i] && *dirs[i] == '/' && keep_in(dirs[i], profile, format, opts))
			return;
	complain(
		"the profile is lost: it cannot be written to $TMPDIR, /var/tmp, /tmp, $HOME or /dev/shm either");
}

int output_keep(struct output *o, struct shstk_profile *profile, const char *title)
{
	const struct shstk_otlp_about about = { .title = title, .type = o->type };
	int err;

	if (!o->streams || !wants(o, "shstk"))
		return 0;
	/* With SIGXFSZ ignored, write() fails above the limit of a file's size. */
	signal(SIGXFSZ, SIG_IGN);
	err = shstk_keep_create(profile, o->given[o->kept] ? o->given[o->kept] : o->paths[o->kept],
				NULL, &about, &o->keep);
	if (!err)
		shstk_profile_keep(profile, o->keep);
	return err;
}

int output_keep_flush(struct output *o, const char *so_far)
{
	return o->keep ? shstk_keep_flush(o->keep, so_far) : 0;
}

void output_keep_stamp(struct output *o)
{
	if (o->keep)
		shstk_keep_rename(o->keep, o->paths[o->kept]);
}

void output_keep_leave(struct output *o, struct shstk_left *left)
{
	*left = (struct shstk_left){ .hidden = NULL };
	if (o->keep)
		shstk_keep_leave(o->keep, left);
	o->keep = NULL;
}

void output_keep_drop(struct output *o)
{
	shstk_keep_drop(o->keep);
	o->keep = NULL;
}

/* Writes the end of the file that was written while samples were added. */
static int finish_keep(struct output *o, struct shstk_profile *profile, const char *path,
		       char *text, size_t size)
{
	struct shstk_keep *keep = o->keep;
	int err;

	o->keep = NULL;
	shstk_profile_keep(profile, NULL);
	err = shstk_keep_finish(keep, o->type);
	if (err)
		snprintf(text, size, "cannot write '%s': %s", path, strerror(-err));
	return err;
}

static bool write_one(struct output *o, unsigned int i, struct shstk_profile *profile,
		      const struct shstk_write_opts *opts)
{
	struct shstk_write_opts fitting = *opts;
	char text[512];
	int err;

	if (!strcmp(o->paths[i], "-"))
		fitting.width = screen_limit();
	if (shstk_profile_empty(profile) && holds_something(o->paths[i])) {
		complain("nothing was recorded: %s is left as it was", o->paths[i]);
		o->left[i] = true;
		return true;
	}
	if (o->keep && i == o->kept)
		err = finish_keep(o, profile, o->paths[i], text, sizeof(text));
	else
		err = shstk_profile_write(profile, o->paths[i], o->formats[i], &fitting, text,
					  sizeof(text));
	if (!err)
		return true;
	complain("%s", text);
	if (err != -EPIPE)
		keep(profile, o->formats[i], opts);
	return false;
}

bool output_write(struct output *o, struct shstk_profile *profile, const char *title)
{
	struct shstk_write_opts opts = {
		.title = title,
		.per_thread = o->per_thread,
		.top = o->top,
		.full_names = o->full_names,
		.type = o->type,
		.inverted = o->inverted,
		.by_total = o->by_total,
		.lines = o->lines,
		.by = o->by,
	};
	bool ok = true;

	/* With SIGXFSZ ignored, write() fails above the limit of a file's size. */
	signal(SIGXFSZ, SIG_IGN);
	for (unsigned int i = 0; i < o->nr; i++)
		ok &= write_one(o, i, profile, &opts);
	if (o->top) {
		opts.width = screen_limit();
		shstk_profile_print(profile, stdout, o->json ? "json" : "top", &opts);
		ok &= end_output() == EXIT_OK;
	}
	return ok;
}

void caution_of(const struct caution_place *place, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (len < 0) {
		complain("out of memory: a line about what is missing is left out");
		return;
	}
	complain("%s", text);
	if (place && place->profile)
		shstk_profile_caution(place->profile, text);
	if (place && place->json)
		shstk_json_string(place->json, NULL, text);
	if (place && place->report) {
		printable(text);
		shstk_put_caution(place->report, text, 0);
	}
	free(text);
}

static void report_lost(const struct shstk_symbols *symbols, const struct caution_place *place)
{
	const char *name, *debug;
	size_t nr = shstk_symbols_lost(symbols, &name, &debug);
	char others[64] = "";

	if (nr > 1)
		snprintf(others, sizeof(others), " and of %zu other file%s", nr - 1,
			 nr == 2 ? "" : "s");
	if (nr)
		caution_of(
			place,
			"lines, inlined functions and some names of %s%s are not shown: the debug file %s, which it names (.gnu_debuglink), is not there or not of this file",
			name, others, debug);
}

void output_report_missing(const struct shstk_symbols *symbols, const struct caution_place *place)
{
	const char *first = NULL;
	size_t nr = shstk_symbols_missing(symbols, &first);

	read_limit_report(symbols, place);
	report_lost(symbols, place);
	if (nr)
		caution_of(
			place,
			"inlined functions of %zu source file%s are not shown: their description is in .dwo files, and %s is not there or not of this program; put them back, or make a .dwp file beside the program by dwp(1)",
			nr, nr == 1 ? "" : "s", first ? first : "the first one");
}

void output_name(const struct output *o, const struct shstk_symbols *symbols,
		 struct shstk_profile *profile)
{
	const struct caution_place place = { .profile = profile };

	if (!o->nr && !o->top && !o->sent)
		return;
	shstk_profile_look_up(profile);
	output_report_missing(symbols, &place);
}

/*
 * Returns where the suffix of a path begins: the suffix of its format, or what follows the last
 * dot.
 */
static size_t suffix_at(const char *path, const char *format)
{
	const char *base = strrchr(path, '/'), *dot;
	size_t size = strlen(path);
	const char *suffix;
	int len;

	suffix = shstk_format_suffix(format, &len);
	if (size > (size_t)len && !strncmp(path + size - len, suffix, len))
		return size - len;
	dot = strrchr(base ? base : path, '.');
	return dot ? (size_t)(dot - path) : size;
}

/*
 * Returns @path with the time put in. The names sort as the times do. @numbered says that there are
 * several files in a second, so that the first one gets number 1.
 */
static char *stamp(const char *path, const char *format, time_t at, bool numbered)
{
	size_t head = suffix_at(path, format);
	char text[32], *name = NULL;
	struct tm tm;

	localtime_r(&at, &tm);
	strftime(text, sizeof(text), "%Y%m%d-%H%M%S", &tm);
	if (asprintf(&name, "%.*s-%s%s%s", (int)head, path, text, numbered ? "_001" : "",
		     path + head) < 0)
		return NULL;
	for (int n = 2; n < MAX_OF_A_SECOND && !access(name, F_OK); n++) {
		free(name);
		if (asprintf(&name, "%.*s-%s_%03d%s", (int)head, path, text, n, path + head) < 0)
			return NULL;
	}
	return name;
}

int output_stamp(struct output *o, time_t at, bool numbered)
{
	for (unsigned int i = 0; i < o->nr; i++) {
		const char *given = o->given[i] ? o->given[i] : o->paths[i];
		char *name = stamp(given, o->formats[i], at, numbered);

		if (!name)
			return -ENOMEM;
		if (o->given[i])
			free((char *)o->paths[i]);
		o->given[i] = given;
		o->paths[i] = name;
	}
	return 0;
}

char *output_list(const struct output *o)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (unsigned int i = 0; i < o->nr; i++)
		fprintf(out, "%s%c", o->paths[i], '\0');
	putc('\0', out);
	fclose(out);
	return text;
}

void output_forget(const char *names)
{
	for (; *names; names += strlen(names) + 1)
		if (unlink(names) && errno != ENOENT)
			complain("%s cannot be removed: %s", names, strerror(errno));
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
		if (!strcmp(o->paths[i], "-") || o->left[i])
			continue;
		fprintf(out, "%s %s", any ? "" : " wrote", o->paths[i]);
		any = true;
	}
	fclose(out);
	return text;
}
