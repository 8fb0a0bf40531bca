/* SPDX-License-Identifier: GPL-2.0-or-later */
/* output.h - the options of commands that write profiles, and writing the profiles. */
#ifndef TOOLS_OUTPUT_H
#define TOOLS_OUTPUT_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "libshstk/symbol/profile.h"

struct shstk_keep;

#define OUTPUT_STEM "shstk"
#define OUTPUT_DEFAULT OUTPUT_STEM ".pb.gz"
#define OUTPUT_MAX 16

/**
 * struct output - what is to be written
 * @paths: paths of the files.
 * @given: paths as the user gave them, if output_stamp() has changed @paths; else NULL.
 * @nr: number of @paths.
 * @unnamed: room for the path of the file for which none was given.
 * @format: format of all files, or NULL: their suffixes choose the formats.
 * @formats: name of the format of each file; set by output_check().
 * @left: the file was left as it was; set by output_write().
 * @streams: a file of the format shstk is written while samples are added; set by the command.
 * @keep: this file, or NULL; set by output_keep().
 * @kept: index of its path.
 * @sent: the profile is sent to a server, too; set by the command.
 * @per_thread: keep threads apart.
 * @full_names: as in &struct shstk_symbols_opts.
 * @top: number of hottest functions to print; 0: none.
 * @json: print the hottest functions as JSON.
 * @inverted: as in &struct shstk_write_opts; set by the command.
 * @type: as in &struct shstk_write_opts; set by the command.
 * @by_total: as in &struct shstk_write_opts; set by --sort.
 * @lines: as in &struct shstk_write_opts; set by the command.
 * @by: as in &struct shstk_write_opts; set by the command.
 */
struct output {
	const char *paths[OUTPUT_MAX];
	const char *given[OUTPUT_MAX];
	unsigned int nr;
	char unnamed[32];
	const char *format;
	const char *formats[OUTPUT_MAX];
	bool left[OUTPUT_MAX];
	bool streams;
	struct shstk_keep *keep;
	unsigned int kept;
	bool sent;
	bool per_thread;
	bool full_names;
	int top;
	bool json;
	bool inverted;
	unsigned int type;
	bool by_total;
	bool lines;
	const char *by;
};

/*
 * Parses -o, --format, --per-thread, --full-names, --top, --sort and --json. It is a child parser
 * for argp(3), whose input is a struct output.
 */
extern const struct argp output_argp;

/**
 * output_check() - find out early whether all files can be written
 * @o: the outputs. If there is none and the profile is not sent, a file is added: OUTPUT_DEFAULT, or
 *	OUTPUT_STEM with the suffix of the format. The formats are chosen.
 * @failed: exit status if a file cannot be written.
 *
 * Return: EXIT_OK; or EXIT_USAGE or @failed, after a message with the reason.
 */
int output_check(struct output *o, int failed);

/**
 * output_begin() - create a profile whose samples each count something
 * @opts: how symbols are found, or NULL.
 * @type: what is counted besides the samples, such as "cpu".
 * @unit: unit of @type.
 * @period: amount of @type between two samples.
 * @symbols: receives the source of symbols, even if the rest fails; to be destroyed after the
 *	profile.
 * @ret: receives the profile, even if the rest fails.
 *
 * Return: 0 or a negative errno.
 */
int output_begin(const struct shstk_symbols_opts *opts, const char *type, const char *unit,
		 uint64_t period, struct shstk_symbols **symbols, struct shstk_profile **ret);

/**
 * output_wants_times() - get how many samples need a time, because a format shows when they were
 * taken
 * @o: the outputs.
 *
 * Return: the number; SIZE_MAX: all; 0: none.
 */
size_t output_wants_times(const struct output *o);

/* Returns true if one of the formats shows how sums grew while recording went on. */
bool output_follows(const struct output *o);

/**
 * output_wants_labels() - does one of the formats show labels of samples?
 * @o: the outputs.
 */
bool output_wants_labels(const struct output *o);

/* Returns true if one of the formats shows files and lines, which take time to find. */
bool output_wants_lines(const struct output *o);

/**
 * output_keep() - write a file of the format shstk while samples are added, if there is one
 * @o: the outputs, whose formats are chosen; nothing is done unless @streams is set.
 * @profile: the profile, without samples.
 * @title: title of flame graphs, which must outlive the recording; NULL: that of the file that is
 *	read.
 *
 * output_write() writes its end.
 *
 * Return: 0 or -ENOMEM.
 */
int output_keep(struct output *o, struct shstk_profile *profile, const char *title);

/**
 * output_keep_flush() - write the samples that wait
 * @o: the outputs.
 * @so_far: what was counted so far.
 *
 * Return: 0 or -ENOMEM.
 */
int output_keep_flush(struct output *o, const char *so_far);

/*
 * Has the file of output_keep() get the name that output_stamp() gave it, once it is finished. An
 * error is reported then.
 */
void output_keep_stamp(struct output *o);

struct shstk_left;

/* Leaves the file of output_keep() to a child process, as shstk_keep_leave() does. */
void output_keep_leave(struct output *o, struct shstk_left *left);

/* Releases the file of output_keep(), if output_write() was not called. */
void output_keep_drop(struct output *o);

/**
 * output_write() - write all files
 * @o: the outputs.
 * @profile: the profile.
 * @title: title of flame graphs.
 *
 * A profile without samples does not replace a file that holds something. A profile that cannot be
 * written to its file (because the disk is full, for example) is kept in a folder for temporary
 * files, and a message says where.
 *
 * Return: true; or false if at least one profile was not written to its file, after a message with
 * the reason.
 */
bool output_write(struct output *o, struct shstk_profile *profile, const char *title);

struct json;

/**
 * struct caution_place - where a line about what is missing is kept, beside being printed
 * @profile: a profile, or NULL.
 * @json: an array of JSON that is open, or NULL.
 * @report: a report for people, or NULL.
 */
struct caution_place {
	struct shstk_profile *profile;
	struct json *json;
	FILE *report;
};

/**
 * caution_of() - print a line as complain() does, and keep it as a caution
 * @place: where; NULL: the line is only printed.
 * @fmt: format as for printf(3).
 */
void caution_of(const struct caution_place *place, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/**
 * output_report_missing() - say whether inlined functions are missing and what would show them, and
 * which files were too expensive to read
 * @symbols: the source of the names, after all names were looked up.
 * @place: keeps the same as cautions; NULL: nothing is kept.
 */
void output_report_missing(const struct shstk_symbols *symbols, const struct caution_place *place);

/**
 * output_name() - look up all names, before the profile is written, and say and keep what is missing
 * @o: the outputs. If there is none, nothing is looked up.
 * @symbols: the source of the names.
 * @profile: the profile.
 */
void output_name(const struct output *o, const struct shstk_symbols *symbols,
		 struct shstk_profile *profile);

/**
 * output_stamp() - put a time into the names of all files, before their suffixes
 * @o: the outputs. "out.svg" becomes "out-20300131-235959.svg", or, if this file exists,
 *	"out-20300131-235959_002.svg".
 * @at: the time.
 * @numbered: give the first file of a second a number, too: "_001".
 *
 * Return: 0 or -ENOMEM.
 */
int output_stamp(struct output *o, time_t at, bool numbered);

/**
 * output_forget() - remove files that were written
 * @names: names from output_list(): each with its 0 byte, and a 0 byte at the end.
 */
void output_forget(const char *names);

/*
 * Returns the names that output_stamp() gave the files, each with its 0 byte, and a 0 byte at the
 * end. The caller frees it. Returns NULL if out of memory.
 */
char *output_list(const struct output *o);

/**
 * output_names() - list the files that were written, for a message
 * @o: the outputs.
 *
 * Return: " wrote FILE..." or "", which the caller frees; or NULL.
 */
char *output_names(const struct output *o);

#endif
