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

#include "libshstk/symbol/profile.h"

#define OUTPUT_DEFAULT	"shstk.pb.gz"
#define OUTPUT_MAX	16

/**
 * struct output - what to write
 * @paths: files, @nr of them.
 * @nr: see @paths.
 * @format: format of all, or NULL: by their suffixes.
 * @per_thread: keep threads apart.
 * @top: print the hottest functions, so many; 0: do not.
 * @type: as in &struct shstk_write_opts; set by the command.
 */
struct output {
	const char *paths[OUTPUT_MAX];
	unsigned int nr;
	const char *format;
	bool per_thread;
	int top;
	unsigned int type;
};

/*
 * Parses -o, --format, --per-thread and --top: a child for argp(3), whose input
 * is a struct output.
 */
extern const struct argp output_argp;

/**
 * output_check() - find out early whether all can be written
 * @o: the outputs; OUTPUT_DEFAULT is added if there is none.
 *
 * Return: false: not, and it was said why.
 */
bool output_check(struct output *o);

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
int output_begin(const struct shstk_symbols_opts *opts, const char *type,
		 const char *unit, uint64_t period,
		 struct shstk_symbols **symbols, struct shstk_profile **ret);

/**
 * output_wants_times() - is one of them in a format that shows single samples?
 * @o: the outputs.
 */
bool output_wants_times(const struct output *o);

/**
 * output_write() - write all
 * @o: the outputs.
 * @profile: the profile.
 * @title: title of flame graphs.
 *
 * Return: false: at least one could not be written, and it was said why.
 */
bool output_write(const struct output *o, struct shstk_profile *profile,
		  const char *title);

/**
 * output_names() - the files that were written, for a message
 * @o: the outputs.
 *
 * Return: " wrote FILE..." or "", to be freed; or NULL.
 */
char *output_names(const struct output *o);

#endif
