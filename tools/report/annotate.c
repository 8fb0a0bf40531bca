// SPDX-License-Identifier: GPL-2.0-or-later
/* annotate.c - the source of a function with its samples, as annotate.h describes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/reason.h"
#include "tools/report/annotate.h"
#include "tools/report/assembly.h"
#include "tools/report/printable_line.h"
#include "tools/report/screen_name.h"
#include "tools/report/source_file.h"
#include "tools/report/spots.h"
#include "tools/shstk.h"

#define AROUND 5 /* lines that are shown before and behind a line with samples */
#define NUMBER_COLUMNS 8 /* of a line's number and the blanks behind it */

enum {
	OPT_ANNOTATE = 2048,
	OPT_ASSEMBLY,
	OPT_SOURCE_DIR,
};

static const struct argp_option options[] = {
	{ "annotate", OPT_ANNOTATE, "FUNCTION", 0,
	  "print the source lines of a function with the samples at each", 0 },
	{ "assembly", OPT_ASSEMBLY, NULL, 0,
	  "with --annotate: its instructions, too, as objdump shows them", 0 },
	{ "source-dir", OPT_SOURCE_DIR, "DIR", 0,
	  "with --annotate: look for source files in DIR first", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct annotate *a = state->input;

	switch (key) {
	case OPT_ANNOTATE:
		a->function = arg;
		return 0;
	case OPT_ASSEMBLY:
		a->assembly = true;
		return 0;
	case OPT_SOURCE_DIR:
		a->source_dir = arg;
		return 0;
	case ARGP_KEY_SUCCESS:
		if (!a->function && (a->assembly || a->source_dir))
			argp_failure(state, argp_err_exit_status, 0,
				     "%s needs --annotate=FUNCTION, which names a function",
				     a->assembly ? "--assembly" : "--source-dir");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp annotate_argp = {
	.options = options,
	.parser = parse,
};

/**
 * struct source_view - a source file that is being printed
 * @spots: of the function.
 * @source: the source file, or NULL if it can't be read.
 * @room: number of columns for a line of it.
 * @ended: the file was said to end before a line.
 */
struct source_view {
	const struct spots *spots;
	struct source_file *source;
	size_t room;
	bool ended;
};

/* Returns how many columns a text may take behind @before other ones. */
static size_t room_behind(const struct annotate *what, size_t before)
{
	if (what->full_names || !isatty(STDOUT_FILENO))
		return PRINTABLE_LINE_MOST;
	return screen_width() - before;
}

/*
 * Prints a line, which has samples if @spot is not NULL. Returns false if the file has no such
 * line; one without samples is not printed then.
 */
static bool put_line(struct source_view *v, uint64_t number, const struct spot *spot)
{
	const char *text = "";
	size_t len = 0;
	const bool there = v->source && source_file_line(v->source, number, &text, &len);

	if (!there && !(spot && (spot->self || spot->total)))
		return false;
	if (v->source && !there && !v->ended) {
		text = "[the file has no such line: is it another version?]";
		len = strlen(text);
		v->ended = true;
	}
	spots_put(v->spots, spot ? spot->self : 0, spot ? spot->total : 0);
	printf("%6llu  ", (unsigned long long)number);
	printable_line(text, len, v->room);
	return there;
}

/* Prints a spot's line and those around it, from line @next on. Returns the next line. */
static uint64_t put_around(struct source_view *v, const struct spot *spot, uint64_t next)
{
	const uint64_t line = spot->key.number, around = v->source ? AROUND : 0;
	const struct spot *other = spot->hh.next;
	uint64_t end = line + around, at = line > around ? line - around : 1;

	if (at > next && next)
		printf("%*s\n", SPOTS_COLUMNS + NUMBER_COLUMNS - 2, "...");
	if (at < next)
		at = next;
	for (; at < line; at++)
		put_line(v, at, NULL);
	put_line(v, line, spot);
	if (other && other->key.file == spot->key.file && other->key.number <= end)
		end = other->key.number - 1;
	for (at = line + 1; at <= end && put_line(v, at, NULL);)
		at++;
	return end + 1;
}

/* Says what the reader must know about a source file before its lines. */
static void put_head(const struct source_view *v, const char *path, const struct reason *why)
{
	const int64_t recorded = v->spots->profile->start;

	printf("%s\n", path);
	if (!v->source)
		printf("lines are not shown: %s (see --source-dir)\n", why->text);
	else if (recorded && source_file_changed(v->source) > recorded)
		puts("caution: the file was changed after the recording began");
	printf("%10s %6s %10s %6s  %s\n", "self", "%", "total", "line", "source");
}

/* Prints all lines of the file of @spot. Returns the first spot of another file, or NULL. */
static const struct spot *put_file(const struct spots *spots, const struct annotate *what,
				   const struct spot *spot)
{
	const char *path = spot->key.file;
	struct reason why = { "" };
	struct source_view v = {
		.spots = spots,
		.source = source_file_open(path, what->source_dir, &why),
		.room = room_behind(what, SPOTS_COLUMNS + NUMBER_COLUMNS),
	};
	uint64_t next = 0;

	put_head(&v, path, &why);
	for (; spot && spot->key.file == path; spot = spot->hh.next)
		next = put_around(&v, spot, next);
	source_file_close(v.source);
	return spot;
}

/* Orders lines by file, then by number; the line that is not known comes last. */
static int by_line(const struct spot *a, const struct spot *b)
{
	int ret = !a->key.file - !b->key.file;

	if (!ret && a->key.file)
		ret = strcmp(a->key.file, b->key.file);
	if (ret)
		return ret;
	return a->key.number < b->key.number ? -1 : a->key.number > b->key.number;
}

static void put_source(struct spots *spots, const struct annotate *what)
{
	const struct spot *spot;

	HASH_SORT(spots->lines, by_line);
	for (spot = spots->lines; spot && spot->key.file;)
		spot = put_file(spots, what, spot);
	if (spot && spots->lines != spot) {
		spots_put(spots, spot->self, spot->total);
		printf("%6s  [no line is known]\n", "");
	}
}

static void put_sums(const struct spots *spots, const struct annotate *what)
{
	const struct shstk_profile *profile = spots->profile;
	const struct shstk_value_type *type = &profile->types[spots->type];
	char whole[32], self[32], total[32], name[SCREEN_NAME_MAX];
	const int width = (int)screen_width();
	int n;

	for (size_t i = 0; i < profile->nr_cautions; i++)
		shstk_put_caution(stdout, profile->cautions[i], screen_limit());
	shstk_format_value(whole, sizeof(whole), shstk_profile_total(profile, spots->type),
			   type->unit);
	shstk_format_value(self, sizeof(self), spots->all.self, type->unit);
	shstk_format_value(total, sizeof(total), spots->all.total, type->unit);
	n = printf("%s, %s in all; %s self, %s with callees of ", type->type, whole, self, total);
	if (n > 0 && room_behind(what, 0) < PRINTABLE_LINE_MOST)
		puts(screen_name(spots->function, width > n ? width - n : 0, name));
	else
		puts(spots->function);
}

static bool has_lines(const struct spots *spots)
{
	for (const struct spot *spot = spots->lines; spot; spot = spot->hh.next)
		if (spot->key.file)
			return true;
	return false;
}

/* Finds out whether there is what is to be shown. Returns an exit status, after a message. */
static int check(const struct spots *spots, const struct annotate *what)
{
	const bool lines = has_lines(spots);

	if (what->assembly ? spots->addresses != NULL : lines)
		return EXIT_OK;
	if (spots->addresses)
		complain(
			"%s has no lines of '%s', as its program has no debug information; --assembly shows instructions",
			what->file, what->function);
	else
		complain(
			"%s has no %saddresses of '%s', as folded stacks have none: annotate a file that record -o FILE.shstk or FILE.pb.gz wrote",
			what->file, lines ? "" : "lines and no ", what->function);
	return EXIT_FAILED;
}

static int complain_missing(const struct spots *spots, const struct annotate *what)
{
	char *like = spots_like(spots, what->function);

	if (like)
		complain("no sample has a function '%s'; similar names: %s", what->function, like);
	else
		complain("no sample has a function '%s'; --top and --full-names list functions",
			 what->function);
	free(like);
	return EXIT_FAILED;
}

static int put_all(struct spots *spots, const struct annotate *what)
{
	int status = check(spots, what);

	if (status != EXIT_OK)
		return status;
	put_sums(spots, what);
	put_source(spots, what);
	if (what->assembly)
		status = assembly_print(spots, room_behind(what, ASSEMBLY_COLUMNS));
	return end_output() == EXIT_OK ? status : EXIT_FAILED;
}

int annotate_print(const struct shstk_profile *profile, const struct annotate *what)
{
	struct spots spots = { 0 };
	int status, err = profile->nr_types ? 0 : -ENOENT;

	if (!err)
		err = spots_find(profile, what->function, what->type, &spots);
	if (!err) {
		status = put_all(&spots, what);
	} else if (err == -ENOENT && spots.profile) {
		status = complain_missing(&spots, what);
	} else {
		complain("%s", err == -ENOENT ? "no sample was chosen" : strerror(-err));
		status = EXIT_FAILED;
	}
	if (spots.profile)
		spots_deinit(&spots);
	return status;
}
