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
#define SHSTK_PROFILE_MAX_LABELS 64 /* of a sample; further ones are left out */

struct shstk_profile;

/* Title of a recording that is not of a command: each process belongs to a service of its own. */
#define SHSTK_TITLE_NO_COMMAND "shstk record"

/**
 * enum shstk_note - a frame that stands for something that is not on the stack
 * @SHSTK_NOTE_NONE: no such frame.
 * @SHSTK_NOTE_TRUNCATED: the outermost frames are missing.
 * @SHSTK_NOTE_TICKS: time that passed where no sample could be taken.
 * @SHSTK_NOTE_LOADER: time before the program's own code ran: exec and dynamic linking.
 * @SHSTK_NOTE_EXIT: time after the program's own code ran.
 * @SHSTK_NOTE_HELD: time that passed on a stack that has no room for a sample.
 * @SHSTK_NOTE_UNSAMPLED: events that were counted, but have no sample.
 * @SHSTK_NOTE_THREADS: time of threads that ended before their first sample or between two.
 * @SHSTK_NOTE_KERNEL: time in the kernel, where the user may not see its stacks.
 * @SHSTK_NOTES: number of values of this enum.
 */
enum shstk_note {
	SHSTK_NOTE_NONE,
	SHSTK_NOTE_TRUNCATED,
	SHSTK_NOTE_TICKS,
	SHSTK_NOTE_LOADER,
	SHSTK_NOTE_EXIT,
	SHSTK_NOTE_HELD,
	SHSTK_NOTE_UNSAMPLED,
	SHSTK_NOTE_THREADS,
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
 * @end: enum shstk_end of the capture. A stack that is not complete is shown below a "[truncated]"
 *	frame.
 * @note: enum shstk_note: the stack is shown below the frame that this names.
 * @labels: keys and values, each followed by a zero byte: key, value, next key; or NULL. pprof
 *	shows them; samples with different labels are not equal.
 * @labels_size: bytes at @labels.
 * @locations: the stack as shstk_profile_name() gave it, innermost first, instead of @pcs and
 * @marks; or NULL.
 * @time: time of the sample in ns of CLOCK_MONOTONIC; used after shstk_profile_keep_times().
 * @cpu: number of the CPU that the sample was taken on, from 1; 0: not known.
 * @values: one value for each type. Formats that show one value leave out stacks whose sum is below
 *	0; tables show them.
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
	unsigned int cpu;
	const int64_t *values;
};

/**
 * struct shstk_life - the beginning or the end of a process
 * @time: when it was, in ns of CLOCK_MONOTONIC.
 * @comm: name of the process at that time.
 * @pid: process ID.
 * @ended: the process ended; it began otherwise.
 */
struct shstk_life {
	uint64_t time;
	const char *comm;
	int pid;
	bool ended;
};

/**
 * struct shstk_write_opts - how to write; all zero is the default
 * @title: title of a flame graph, or NULL.
 * @per_thread: one tower (root frame) per thread instead of per command name.
 * @icicle: flame graph with the root on top.
 * @inverted: flame graphs and folded stacks begin with the innermost function, and its callers
 *	stand above it.
 * @type: the value type that formats with one value use, counted from 1; 0: the default one.
 * @full_names: names in tables are not shortened.
 * @width: columns of a line of the "top" format, in which names are shortened to fit and cautions go
 *	on in further lines; 0: no limit.
 * @top: number of lines of the "top" format, and of functions in "json"; 0: 20.
 * @by_total: functions in "top" and "json" are sorted by their value with callees, not by their
 *	own.
 * @lines: "top" and "json" show the source lines of functions, where they are known.
 * @by: what stands outermost in flame graphs, folded stacks and trees, separated by commas: "comm",
 *	"thread" (name and number), "pid", "tid", "language" (of the innermost function), or the key
 *	of a label; NULL: "comm", or as @per_thread says.
 * @base: profile that this one is compared with, of the same symbols with the same value types, or
 *	NULL; pages, flame graphs and folded stacks show the difference.
 */
struct shstk_write_opts {
	const char *title;
	bool per_thread;
	bool icicle;
	bool inverted;
	bool full_names;
	unsigned int type;
	unsigned int top;
	unsigned int width;
	const struct shstk_profile *base;
	bool by_total;
	bool lines;
	const char *by;
};

/**
 * shstk_profile_create() - make an empty profile
 * @symbols: store that names the addresses; it must outlive the profile.
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
 * shstk_profile_set_period() - set what one event stands for
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
 * shstk_profile_set_time() - set when the profile was recorded
 * @profile: the profile.
 * @start: beginning of the recording, in ns since 1970.
 * @duration: length of the recording, in ns.
 */
void shstk_profile_set_time(struct shstk_profile *profile, int64_t start, int64_t duration);

/**
 * shstk_profile_set_origin() - set the beginning of the recording as times of samples count
 * @profile: the profile.
 * @origin: the beginning in ns of CLOCK_MONOTONIC, the same moment as shstk_profile_set_time() gets.
 */
void shstk_profile_set_origin(struct shstk_profile *profile, uint64_t origin);

/**
 * shstk_profile_set_main() - say which process is that of the command that was started
 * @profile: the profile.
 * @pid: its process ID.
 *
 * Readers of pprof's format take the first mapping for the program: it is that process's.
 */
void shstk_profile_set_main(struct shstk_profile *profile, int pid);

/**
 * shstk_profile_comment() - add a line of free text (command line, lost samples)
 * @profile: the profile.
 * @text: the text.
 *
 * Return: 0 or -ENOMEM.
 */
int shstk_profile_comment(struct shstk_profile *profile, const char *text);

/**
 * shstk_profile_caution() - add a line about what the profile lacks or knows only roughly
 * @profile: the profile.
 * @text: the text. A text that is there already is not added again.
 *
 * No format leaves these lines out: flame graphs show them below the title; tables, JSON and the
 * perf text at the top; pprof as its first comments, each behind "caution: "; folded stacks as
 * stacks with the value 0.
 *
 * Return: 0 or -ENOMEM.
 */
int shstk_profile_caution(struct shstk_profile *profile, const char *text);

/**
 * shstk_profile_look_up() - look up the names of all stacks now
 * @profile: the profile.
 *
 * Writing it looks them up, too. Before that, what cannot be named may be told as a caution.
 */
void shstk_profile_look_up(struct shstk_profile *profile);

/**
 * shstk_profile_keep_times() - keep the times of samples from now on
 * @profile: the profile, without samples.
 * @most: how many samples may have a time; SIZE_MAX: all of them. When there are more, their times
 *	become less exact, and equal samples at one time become one, so the memory is bounded.
 *
 * The perf text format then has one record per sample, in order of time; without times it has one
 * record per distinct stack with the sum as its period. Pages have a timeline. Each sample costs 16
 * bytes and its values.
 */
void shstk_profile_keep_times(struct shstk_profile *profile, size_t most);

struct shstk_keep;

/**
 * shstk_profile_keep() - write samples to a file as they are added from now on
 * @profile: the profile.
 * @keep: the file (keep.h), or NULL: no more.
 */
void shstk_profile_keep(struct shstk_profile *profile, struct shstk_keep *keep);

/**
 * shstk_profile_live() - note that a process began or ended
 * @profile: the profile, which keeps times of samples (shstk_profile_keep_times()) or each sample
 *	(shstk_profile_keep()); otherwise nothing is noted, as no format shows it.
 * @life: what happened; it is copied. Of the first SHSTK_LIVES_MOST is noted when they were.
 *
 * Return: 0 or -ENOMEM.
 */
int shstk_profile_live(struct shstk_profile *profile, const struct shstk_life *life);

/**
 * shstk_profile_add() - add a sample
 * @profile: the profile, with at least one type.
 * @sample: the sample; everything is copied.
 *
 * Return: 0, -EINVAL (no type is declared), or -ENOMEM; the sample is not counted on failure.
 */
int shstk_profile_add(struct shstk_profile *profile, const struct shstk_sample *sample);

struct shstk_record;

/**
 * shstk_profile_enter() - add a stack that is counted by shstk_profile_count()
 * @profile: the profile, with at least one type.
 * @sample: the stack; its time and values are not used, and everything else is copied.
 * @ret: receives the stack, which is the same one for equal samples. It is valid as long as the
 *	profile, until shstk_profile_reset().
 *
 * Return: 0, -EINVAL (no type is declared), or -ENOMEM.
 */
int shstk_profile_enter(struct shstk_profile *profile, const struct shstk_sample *sample,
			const struct shstk_record **ret);

/**
 * shstk_profile_count() - add values to a stack, as a sample of it would
 * @profile: the profile.
 * @record: the stack, from shstk_profile_enter() with this profile.
 * @time: time in ns of CLOCK_MONOTONIC, as &shstk_sample.time.
 * @values: one value for each type; they may be below 0.
 *
 * Return: 0 or -ENOMEM.
 */
int shstk_profile_count(struct shstk_profile *profile, const struct shstk_record *record,
			uint64_t time, const int64_t *values);

/**
 * shstk_profile_name_map() - make a mapping as another profile describes it
 * @profile: the profile.
 * @path: path of the file, or another name of the mapping.
 * @start: first address.
 * @end: first address behind the mapping.
 * @offset: offset of @start in the file, in bytes.
 * @build_id: build id in hexadecimal digits, or "".
 *
 * The file is not opened.
 *
 * Return: the mapping, the same one for equal arguments; NULL when memory runs out.
 */
const struct shstk_symmap *shstk_profile_name_map(struct shstk_profile *profile, const char *path,
						  uint64_t start, uint64_t end, uint64_t offset,
						  const char *build_id);
/*
 * Gives a mapping that shstk_profile_name_map() made OpenTelemetry's id of its file, in hexadecimal
 * digits; a text that is none is passed over. Returns false when memory runs out.
 */
bool shstk_profile_hash_map(struct shstk_profile *profile, const struct shstk_symmap *map,
			    const char *hex);

/**
 * struct shstk_named - an entry of a stack that has its names already
 * @map: what shstk_profile_name_map() returned, or NULL: the mapping is not known.
 * @address: the address, or 0.
 * @guessed: that it is on the stack was found by guessing.
 * @source: number of the file that the entry comes from, or 0. Two entries of one source other than
 *	0 are different, even if all else is equal; entries of different sources, and of source 0,
 *	are the same if all else is equal.
 * @nr: number of elements of @frames.
 * @frames: functions, the innermost inlined one first. Their strings are as they were read.
 */
struct shstk_named {
	const struct shstk_symmap *map;
	uint64_t address;
	bool guessed;
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
 * @keep_times: of how many samples the times are kept, if the file has them, as
 *	shstk_profile_keep_times() says.
 * @take: called for each sample; returns false to leave it out. It may change the sample and
 * @values, which are the sample's values; NULL: all samples are taken.
 * @take_life: the same for the beginning and the end of each process.
 * @arg: first argument of @take and of @take_life.
 */
struct shstk_read_opts {
	bool frames_only;
	size_t keep_times;
	bool (*take)(void *arg, struct shstk_profile *profile, struct shstk_sample *sample,
		     int64_t *values);
	bool (*take_life)(void *arg, const struct shstk_profile *profile,
			  const struct shstk_life *life);
	void *arg;
};

/**
 * shstk_profile_read() - add the samples of a file
 * @profile: the profile: without types, or with those that the file has.
 * @path: file in pprof's format, compressed or not, or with folded stacks; "-" is standard input.
 * @opts: options, or NULL.
 * @err: receives one line without line break on failure, naming @path.
 * @err_size: bytes in @err.
 *
 * The options of the profile's symbol store bound the memory and time of reading.
 *
 * Return: 0; -EINVAL: it is no such file, or contradicts itself; -E2BIG: it takes too much memory;
 * -ENOMEM; or the errno of reading the file. On failure some samples may have been added.
 */
int shstk_profile_read(struct shstk_profile *profile, const char *path,
		       const struct shstk_read_opts *opts, char *err, size_t err_size);

/* Does what shstk_profile_read() does, with @size bytes in memory; @path is only shown in @err. */
int shstk_profile_read_bytes(struct shstk_profile *profile, const char *path, const void *data,
			     size_t size, const struct shstk_read_opts *opts, char *err,
			     size_t err_size);

/**
 * shstk_profile_title() - get the title that a profile had when it was recorded
 * @profile: the profile, which was read.
 *
 * Return: the title, or NULL if the file has none.
 */
const char *shstk_profile_title(const struct shstk_profile *profile);

/**
 * shstk_profile_origin() - get the time at which a recording began
 * @profile: the profile, which may still be read.
 *
 * Return: the beginning as &shstk_sample.time counts, 0 if it is not known.
 */
uint64_t shstk_profile_origin(const struct shstk_profile *profile);

/**
 * shstk_profile_find_type() - find a value type by its name
 * @profile: the profile.
 * @type: name of the type; NULL: the default type.
 *
 * Return: its number from 1, 0 if there is none.
 */
unsigned int shstk_profile_find_type(const struct shstk_profile *profile, const char *type);

/**
 * shstk_profile_set_note() - say more about a value type
 * @profile: the profile.
 * @type: index of the value type from 0.
 * @note: text that tables and flame graphs show behind the type's name.
 *
 * Return: 0, -EINVAL (there is no such type), -ENOMEM.
 */
int shstk_profile_set_note(struct shstk_profile *profile, unsigned int type, const char *note);

/**
 * shstk_profile_empty() - check whether a profile has no samples
 * @profile: the profile.
 *
 * Return: whether there is no sample.
 */
bool shstk_profile_empty(const struct shstk_profile *profile);

/**
 * shstk_profile_reset() - forget all samples
 * @profile: the profile. Its types stay; it must not have comments or cautions.
 */
void shstk_profile_reset(struct shstk_profile *profile);

/**
 * shstk_profile_total() - sum the values of all samples
 * @profile: the profile.
 * @type: index of the value type from 0.
 *
 * Return: the sum.
 */
int64_t shstk_profile_total(const struct shstk_profile *profile, unsigned int type);

/**
 * shstk_profile_truncated() - sum the values of samples whose outermost frames are missing
 * @profile: the profile.
 * @type: index of the value type from 0.
 *
 * Return: the sum.
 */
int64_t shstk_profile_truncated(const struct shstk_profile *profile, unsigned int type);

/**
 * shstk_profile_guessed() - sum the values of samples whose stacks have a guessed entry
 * @profile: the profile.
 * @type: index of the value type from 0.
 *
 * Return: the sum; samples that were read from a file do not count.
 */
int64_t shstk_profile_guessed(const struct shstk_profile *profile, unsigned int type);

/**
 * shstk_format_find() - choose a format
 * @format: name of a format ("pprof", "pb", "folded", "svg", "html", "speedscope", "firefox",
 *	"trace", "callgrind", "perf", "top", "json", "shstk"), or NULL: chosen by the suffix of @path
 *	(.pb.gz .pprof .pb .folded .collapsed .svg .html .speedscope.json .firefox.json .trace.json
 *	.callgrind .perf .txt
 *	.top .json .shstk).
 * @path: file to be written, or NULL.
 *
 * Return: the format's name, or NULL if there is none.
 */
const char *shstk_format_find(const char *format, const char *path);

/**
 * shstk_format_list() - list the names of all formats, for usage texts
 *
 * Return: "pprof, pb, folded, svg, html, speedscope, firefox, trace, callgrind, perf, top, json,
 * shstk".
 */
const char *shstk_format_list(void);

/**
 * shstk_format_suffix() - get the usual file name suffix of a format
 * @format: name of a format.
 * @len: receives the length of the suffix.
 *
 * Return: the suffix, such as ".pb.gz", without a zero at its end: only @len bytes belong to it.
 */
const char *shstk_format_suffix(const char *format, int *len);

/**
 * shstk_profile_write() - write a profile to a file
 * @profile: the profile.
 * @path: file; "-" is standard output. A regular file is written under another name beside it and
 *	renamed when complete.
 * @format: name of a format, or NULL: chosen by the suffix of @path.
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
 * @path: the same as for shstk_profile_write().
 * @format: the same as for shstk_profile_write().
 * @err: the same as for shstk_profile_write().
 * @err_size: the same as for shstk_profile_write().
 *
 * It leaves no file behind.
 *
 * Return: the same as shstk_profile_write().
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
 * @out: receives "45.8 % function", or nothing if there is no such function.
 *
 * Return: 0 or -ENOMEM.
 */
int shstk_profile_hottest(const struct shstk_profile *profile, FILE *out);

/**
 * shstk_put_caution() - print a caution for people
 * @out: where to.
 * @text: the caution.
 * @width: columns of a line; the text goes on in further lines. 0: it is one line.
 */
void shstk_put_caution(FILE *out, const char *text, unsigned int width);

/**
 * shstk_format_value() - format a value in its unit, for people
 * @buf: receives "1.234 s", "12.30 MiB", "1234".
 * @size: bytes in @buf.
 * @value: the value.
 * @unit: unit as in shstk_profile_add_type().
 */
void shstk_format_value(char *buf, size_t size, int64_t value, const char *unit);

#endif /* SHSTK_PROFILE_H */
