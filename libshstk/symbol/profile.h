/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * profile.h - a profile in memory, and writing it.
 *
 * A profile has one or more value types (cpu nanoseconds, samples; allocated
 * bytes, ...) and samples: a process, a thread, a stack and one value per
 * type. Equal samples are summed. Addresses are tied to their mapping when a
 * sample is added and named when the profile is written (symbol.h).
 *
 *   shstk_profile_create(symbols, &profile);
 *   shstk_profile_add_type(profile, "samples", "count");
 *   shstk_profile_add_type(profile, "cpu", "nanoseconds");
 *   shstk_profile_add(profile, &sample);                           many times
 *   shstk_profile_write(profile, "out.svg", NULL, NULL, err, sizeof(err));
 *
 * Part of libshstk-symbol.a, internal to this tree; one thread at a time; not
 * for signal handlers.
 */
#ifndef SHSTK_PROFILE_H
#define SHSTK_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "symbol.h"

#define SHSTK_PROFILE_MAX_TYPES 10
#define SHSTK_PROFILE_MAX_LABELS 64 /* of a sample; more are left out */

struct shstk_profile;

/**
 * enum shstk_note - a frame that stands for what is not on the stack
 * @SHSTK_NOTE_NONE: there is none.
 * @SHSTK_NOTE_TRUNCATED: the outermost frames are missing.
 * @SHSTK_NOTE_TICKS: the time passed where no sample could be taken.
 * @SHSTK_NOTE_LOADER: before the program's own code ran: exec and dynamic linking.
 * @SHSTK_NOTE_EXIT: after the program's own code ran.
 * @SHSTK_NOTE_HELD: the time passed on a stack that has no room for a sample.
 * @SHSTK_NOTE_UNSAMPLED: what was counted, but has no sample.
 * @SHSTK_NOTE_KERNEL: time in the kernel, for somebody who may not see it.
 */
enum shstk_note {
	SHSTK_NOTE_NONE,
	SHSTK_NOTE_TRUNCATED,
	SHSTK_NOTE_TICKS,
	SHSTK_NOTE_LOADER,
	SHSTK_NOTE_EXIT,
	SHSTK_NOTE_HELD,
	SHSTK_NOTE_UNSAMPLED,
	SHSTK_NOTE_KERNEL,
	SHSTK_NOTES,
};

/**
 * struct shstk_sample - one sample as it is added
 * @proc: the process, with its mappings as they are now.
 * @tid: thread ID.
 * @comm: name of the thread.
 * @pcs: the stack, innermost first, as the captures of shstk.h give it.
 * @marks: SHSTK_MARK_* of each entry, or NULL: all are return addresses.
 * @nr: number of entries of @pcs and @marks, or of @locations.
 * @end: enum shstk_end of the capture. Where it is not complete the stack is
 *	shown below a "[truncated]" frame.
 * @note: enum shstk_note: the stack is shown below this frame.
 * @labels: keys and values, each with a zero behind it, key by key; or NULL. pprof shows
 *	them; samples that differ in them are not equal.
 * @labels_size: bytes at @labels.
 * @locations: the stack as shstk_profile_name() gave it, innermost first, instead of @pcs and
 *	@marks; or NULL.
 * @time: when, in ns of CLOCK_MONOTONIC; used if shstk_profile_keep_times().
 * @values: one value for each type. Stacks whose sum is below 0 are not shown by the
 *	formats that have one value, but for tables.
 */
struct shstk_sample {
	struct shstk_symproc *proc;
	int tid;
	const char *comm;
	const uint64_t *pcs;
	const uint8_t *marks;
	unsigned int nr;
	int end;
	int note;
	const char *labels;
	size_t labels_size;
	const uint32_t *locations;
	uint64_t time;
	const int64_t *values;
};

/**
 * struct shstk_write_opts - how to write; all zero is the default
 * @title: title of a flame graph, or NULL.
 * @per_thread: one tower (root frame) per thread instead of per command name.
 * @icicle: flame graph with the root on top.
 * @inverted: flame graphs and folded stacks begin with the innermost function, and its callers
 *	stand above it.
 * @type: the value type that formats with one value use, counted from 1; 0:
 *	the default one.
 * @full_names: names in tables are not cut to what tells most.
 * @top: lines of the "top" format, functions in "json"; 0: 20.
 * @by_total: functions in "top" and "json" are sorted by their value with callees, not by their own.
 * @lines: "top" and "json" have the lines of functions, where they are known.
 * @by: what stands outermost in flame graphs, folded stacks and trees, separated by commas: "comm",
 *	"pid", "tid", or the key of a label; NULL: "comm", or as @per_thread says.
 * @base: what the profile is compared with, a profile of the same symbols with the same value
 *	types, or NULL; pages, flame graphs and folded stacks show it.
 */
struct shstk_write_opts {
	const char *title;
	bool per_thread;
	bool icicle;
	bool inverted;
	bool full_names;
	unsigned int type;
	unsigned int top;
	const struct shstk_profile *base;
	bool by_total;
	bool lines;
	const char *by;
};

/**
 * shstk_profile_create() - make an empty profile
 * @symbols: names its addresses; must outlive the profile.
 * @ret: receives the profile; give it to shstk_profile_destroy().
 *
 * Return: 0 or -ENOMEM.
 */
int shstk_profile_create(struct shstk_symbols *symbols, struct shstk_profile **ret);

/**
 * shstk_profile_destroy() - release a profile
 * @profile: a profile, or NULL.
 */
void shstk_profile_destroy(struct shstk_profile *profile);

/**
 * shstk_profile_add_type() - declare the next value of all samples
 * @profile: a profile without samples.
 * @type: what is measured: "cpu", "wall", "samples", "alloc_space", ...
 * @unit: "nanoseconds", "count", "bytes".
 *
 * The type declared last is the default of formats that show one.
 *
 * Return: its index from 0, -EINVAL if there are samples, -E2BIG if there are
 * SHSTK_PROFILE_MAX_TYPES already, -ENOMEM.
 */
int shstk_profile_add_type(struct shstk_profile *profile, const char *type, const char *unit);

/**
 * shstk_profile_set_period() - what one event stands for
 * @profile: the profile.
 * @type: type of the event: "cpu", "wall".
 * @unit: unit of @period.
 * @period: amount between two events (1001001 ns at 999 Hz).
 *
 * Return: 0 or -ENOMEM.
 */
int shstk_profile_set_period(struct shstk_profile *profile, const char *type, const char *unit,
			     int64_t period);

/**
 * shstk_profile_set_time() - when it was recorded
 * @profile: the profile.
 * @start: ns since 1970.
 * @duration: ns.
 */
void shstk_profile_set_time(struct shstk_profile *profile, int64_t start, int64_t duration);

/**
 * shstk_profile_comment() - add a line of free text (command line, lost samples)
 * @profile: the profile.
 * @text: the text.
 *
 * Return: 0 or -ENOMEM.
 */
int shstk_profile_comment(struct shstk_profile *profile, const char *text);

/**
 * shstk_profile_caution() - add a line about what the profile does not hold, or not exactly
 * @profile: the profile.
 * @text: the text. One that is there already is not added again.
 *
 * No format leaves them out: flame graphs have them below the title, tables, JSON and the
 * perf text at the top, pprof as its first comments behind "caution: ", folded stacks as stacks of the value 0.
 *
 * Return: 0 or -ENOMEM.
 */
int shstk_profile_caution(struct shstk_profile *profile, const char *text);

/**
 * shstk_profile_keep_times() - keep the times of samples from now on
 * @profile: the profile, without samples.
 * @most: how many samples may have one; SIZE_MAX: all of them. When there are more, their times
 *	become less exact, and equal samples at one time are one, so it takes bounded memory.
 *
 * The perf text format then has one record per sample, in order of time;
 * without, one per distinct stack with the sum as its period. Pages have a timeline. Costs 16
 * bytes and the values per sample.
 */
void shstk_profile_keep_times(struct shstk_profile *profile, size_t most);

/**
 * shstk_profile_add() - add a sample
 * @profile: the profile, with at least one type.
 * @sample: the sample; everything is copied.
 *
 * Return: 0, -EINVAL (no type declared), -ENOMEM: not counted.
 */
int shstk_profile_add(struct shstk_profile *profile, const struct shstk_sample *sample);

/**
 * shstk_profile_name_map() - a mapping that somebody else knew
 * @profile: the profile.
 * @path: file, or what the mapping is called.
 * @start: first address.
 * @end: behind the last address.
 * @offset: in the file.
 * @build_id: in hexadecimal digits, or "".
 *
 * The file is not opened.
 *
 * Return: the mapping, the same for equal arguments; NULL when memory runs out.
 */
const struct shstk_symmap *shstk_profile_name_map(struct shstk_profile *profile, const char *path,
						  uint64_t start, uint64_t end, uint64_t offset,
						  const char *build_id);

/**
 * struct shstk_named - an entry of a stack that has its names already
 * @map: what shstk_profile_name_map() gave, or NULL: it is not known.
 * @address: the address, or 0.
 * @source: entries of one source other than 0 are different ones, even if they are equal; those
 *	of two sources, and of source 0, are the same.
 * @nr: number of elements of @frames.
 * @frames: functions, innermost inlined one first. Their strings are as they were read.
 */
struct shstk_named {
	const struct shstk_symmap *map;
	uint64_t address;
	unsigned int source;
	unsigned int nr;
	const struct shstk_symframe *frames;
};

/**
 * shstk_profile_name() - make an entry for stacks whose functions are known by name
 * @profile: the profile.
 * @named: the entry; everything is copied.
 * @ret: receives its number, for &shstk_sample.locations.
 *
 * Return: 0 or -ENOMEM.
 */
int shstk_profile_name(struct shstk_profile *profile, const struct shstk_named *named,
		       uint32_t *ret);

/**
 * struct shstk_read_opts - how to read a profile; all zero is the default
 * @frames_only: the first name of a folded stack is a function, not a thread.
 * @take: asked for each sample: false leaves it out. It may change the sample, and the values,
 *	which are @values; NULL: all are taken.
 * @arg: for @take.
 */
struct shstk_read_opts {
	bool frames_only;
	bool (*take)(void *arg, struct shstk_profile *profile, struct shstk_sample *sample,
		     int64_t *values);
	void *arg;
};

/**
 * shstk_profile_read() - add what a file holds
 * @profile: the profile: without types, or with those that the file has.
 * @path: pprof's format, compressed or not, or folded stacks; "-" is standard input.
 * @opts: options, or NULL.
 * @err: receives one line without line break on failure, naming @path.
 * @err_size: bytes in @err.
 *
 * What it may take is bounded by the options of the profile's symbols.
 *
 * Return: 0; -EINVAL: it is no such file, or contradicts itself; -E2BIG: it takes too much;
 * -ENOMEM, or the errno of reading it. Some of its samples may have been added then.
 */
int shstk_profile_read(struct shstk_profile *profile, const char *path,
		       const struct shstk_read_opts *opts, char *err, size_t err_size);

/* The same, of @size bytes that are in memory; @path is only told. */
int shstk_profile_read_bytes(struct shstk_profile *profile, const char *path, const void *data,
			     size_t size, const struct shstk_read_opts *opts, char *err,
			     size_t err_size);

/**
 * shstk_profile_find_type() - the value type of a name
 * @profile: the profile.
 * @type: its name; NULL: the default one.
 *
 * Return: its number from 1, 0 if there is none.
 */
unsigned int shstk_profile_find_type(const struct shstk_profile *profile, const char *type);

/**
 * shstk_profile_set_note() - say more about a value type
 * @profile: the profile.
 * @type: index of the value type from 0.
 * @note: shown in tables and flame graphs behind the type's name.
 *
 * Return: 0, -EINVAL (there is no such type), -ENOMEM.
 */
int shstk_profile_set_note(struct shstk_profile *profile, unsigned int type, const char *note);

/**
 * shstk_profile_empty() - is there no sample?
 * @profile: the profile.
 */
bool shstk_profile_empty(const struct shstk_profile *profile);

/**
 * shstk_profile_reset() - forget all samples
 * @profile: the profile, whose types stay, and which may have no comments or cautions.
 */
void shstk_profile_reset(struct shstk_profile *profile);

/**
 * shstk_profile_total() - sum over all samples
 * @profile: the profile.
 * @type: index of the value type from 0.
 */
int64_t shstk_profile_total(const struct shstk_profile *profile, unsigned int type);

/**
 * shstk_format_find() - choose a format
 * @format: name of a format ("pprof", "pb", "folded", "svg", "html", "speedscope",
 *	"perf", "top", "json"), or NULL: by the suffix of @path (.pb.gz .pprof .pb .folded
 *	.collapsed .svg .html .speedscope.json .perf .txt .top .json).
 * @path: file to be written, or NULL.
 *
 * Return: the format's name, or NULL if there is none.
 */
const char *shstk_format_find(const char *format, const char *path);

/**
 * shstk_format_list() - names of all formats, for usage texts
 *
 * Return: "pprof, pb, folded, svg, html, speedscope, perf, top, json".
 */
const char *shstk_format_list(void);

/**
 * shstk_format_suffix() - how files in a format are usually called
 * @format: name of a format.
 * @len: receives the length of the suffix.
 *
 * Return: the suffix, such as ".pb.gz"; what is behind it does not belong to it.
 */
const char *shstk_format_suffix(const char *format, int *len);

/**
 * shstk_profile_write() - write a profile to a file
 * @profile: the profile.
 * @path: file; "-" is standard output. A regular file is written under another
 *	name beside it and renamed when complete.
 * @format: name of a format, or NULL: by the suffix.
 * @opts: options, or NULL.
 * @err: receives one line without line break on failure, naming @path.
 * @err_size: bytes in @err.
 *
 * Return: 0, -EINVAL (no such format), -ENOMEM, or the errno of the write.
 */
int shstk_profile_write(struct shstk_profile *profile, const char *path, const char *format,
			const struct shstk_write_opts *opts, char *err, size_t err_size);

/**
 * shstk_profile_check() - find out early whether a file can be written
 * @path: as for shstk_profile_write().
 * @format: as for shstk_profile_write().
 * @err: as for shstk_profile_write().
 * @err_size: as for shstk_profile_write().
 *
 * Leaves no file behind.
 *
 * Return: as shstk_profile_write().
 */
int shstk_profile_check(const char *path, const char *format, char *err, size_t err_size);

/**
 * shstk_profile_print() - write a profile to an open stream
 * @profile: the profile.
 * @out: the stream.
 * @format: name of a format.
 * @opts: options, or NULL.
 *
 * Return: 0, -EINVAL (no such format), -ENOMEM, -EIO or the errno of the write.
 */
int shstk_profile_print(struct shstk_profile *profile, FILE *out, const char *format,
			const struct shstk_write_opts *opts);

/**
 * shstk_profile_hottest() - write the function with the highest value of its own
 * @profile: the profile.
 * @out: receives "45.8 % function"; nothing, if there is none.
 *
 * Return: 0 or -ENOMEM.
 */
int shstk_profile_hottest(const struct shstk_profile *profile, FILE *out);

/**
 * shstk_format_value() - a value in its unit, for people
 * @buf: receives "1.234 s", "12.30 MiB", "1234".
 * @size: bytes in @buf.
 * @value: the value.
 * @unit: as in shstk_profile_add_type().
 */
void shstk_format_value(char *buf, size_t size, int64_t value, const char *unit);

#endif /* SHSTK_PROFILE_H */
