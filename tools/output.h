/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/output.h - the options of commands that write profiles, and writing
 * them.
 */
#ifndef TOOLS_OUTPUT_H
#define TOOLS_OUTPUT_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "libshstk/symbol/profile.h"

#define OUTPUT_DEFAULT "shstk.pb.gz"
#define OUTPUT_MAX 16

/**
 * struct output - what to write
 * @paths: files, @nr of them.
 * @given: these, as they were given, if output_stamp() has changed @paths.
 * @nr: see @paths.
 * @format: format of all, or NULL: by their suffixes.
 * @formats: name of the format of each; filled by output_check().
 * @left: this file was left as it was; set by output_write().
 * @per_thread: keep threads apart.
 * @full_names: as in &struct shstk_symbols_opts.
 * @top: print the hottest functions, so many; 0: do not.
 * @json: and these as JSON.
 * @inverted: as in &struct shstk_write_opts; set by the command.
 * @type: likewise.
 * @by_total: likewise; of --sort.
 * @lines: likewise; set by the command.
 * @by: likewise; set by the command.
 */
struct output {
	const char *paths[OUTPUT_MAX];
	const char *given[OUTPUT_MAX];
	unsigned int nr;
	const char *format;
	const char *formats[OUTPUT_MAX];
	bool left[OUTPUT_MAX];
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
 * Parses -o, --format, --per-thread, --full-names, --top and --json: a child for
 * argp(3), whose input is a struct output.
 */
extern const struct argp output_argp;

/**
 * output_check() - find out early whether all can be written
 * @o: the outputs; OUTPUT_DEFAULT is added if there is none, and the formats are
 *	chosen.
 * @failed: exit status if a file cannot be written.
 *
 * Return: EXIT_OK; or an exit status, EXIT_USAGE or @failed, and it was said why.
 */
int output_check(struct output *o, int failed);

/**
 * output_begin() - make a profile of samples that each count something
 * @opts: how symbols are found, or NULL.
 * @type: what is counted beside the samples, such as "cpu".
 * @unit: of that.
 * @period: how much of it is between two samples.
 * @symbols: receives where symbols come from, also if the rest fails;
 *	to be destroyed after the profile.
 * @ret: receives the profile, likewise.
 *
 * Return: 0 or a negative errno.
 */
int output_begin(const struct shstk_symbols_opts *opts, const char *type, const char *unit,
		 uint64_t period, struct shstk_symbols **symbols, struct shstk_profile **ret);

/**
 * output_wants_times() - how many samples need a time, as a format shows when they were taken?
 * @o: the outputs.
 *
 * Return: the number, SIZE_MAX: all; 0: none.
 */
size_t output_wants_times(const struct output *o);

/**
 * output_wants_labels() - is one of them in a format that shows labels of samples?
 * @o: the outputs.
 */
bool output_wants_labels(const struct output *o);

/* Is one of them in a format that shows files and lines? They take time to find. */
bool output_wants_lines(const struct output *o);

/**
 * output_write() - write all
 * @o: the outputs.
 * @profile: the profile.
 * @title: title of flame graphs.
 *
 * A profile without samples is not written over a file that holds something. One
 * that cannot be written where it should (the disk is full) is kept in a folder
 * for temporary files, and it is said where.
 *
 * Return: false: at least one was not written where it should, and it was said
 * why.
 */
bool output_write(struct output *o, struct shstk_profile *profile, const char *title);

/**
 * output_report_missing() - say if inlined functions are missing, and what would show them, and
 * which files take too much to read
 * @symbols: where the names come from, after all were looked up.
 */
void output_report_missing(const struct shstk_symbols *symbols);

/**
 * output_stamp() - put the time into the names of all files, before their suffixes
 * @o: the outputs; "out.svg" becomes "out-20300131-235959.svg", or, if there is such a file,
 *	"out-20300131-235959_002.svg".
 * @at: the time.
 * @numbered: the first one of a second has a number, too: "_001".
 *
 * Return: 0 or -ENOMEM.
 */
int output_stamp(struct output *o, time_t at, bool numbered);

/**
 * output_forget() - remove files that were written
 * @names: what output_stamp() called them, each with its 0 byte, and one more.
 */
void output_forget(const char *names);

/* What output_stamp() called the files, in that form; to be freed. NULL: no memory. */
char *output_list(const struct output *o);

/**
 * output_names() - the files that were written, for a message
 * @o: the outputs.
 *
 * Return: " wrote FILE..." or "", to be freed; or NULL.
 */
char *output_names(const struct output *o);

#endif
