/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * export.h - the content of a profile, and the interface of output formats.
 *
 * To add a format: write export_NAME.c with a struct shstk_format, declare it here and name it in
 * the table of export.c.
 *
 * All strings of a profile live in the pool of its symbol store; two equal strings are the same
 * pointer.
 */
#ifndef SHSTK_EXPORT_H
#define SHSTK_EXPORT_H

#include <stdio.h>

#include "hash.h"
#include "moments.h"
#include "perfmap.h"
#include "pool.h"
#include "profile.h"
#include "symbol.h"

/**
 * struct shstk_value_type - what one value of a sample measures
 * @type: name of what is measured, such as "cpu".
 * @unit: unit of the values, such as "nanoseconds".
 * @note: text that is shown beside @type, or NULL.
 */
struct shstk_value_type {
	const char *type;
	const char *unit;
	const char *note;
};

/**
 * struct shstk_location - an address of a stack; the key of a profile's table are the members from
 * @map to @generated
 * @map: the mapping that held the address at the time of the sample.
 * @pc: the address as it was captured.
 * @how: enum shstk_symaddr.
 * @guessed: 1: that it is on the stack was found by guessing (SHSTK_MARK_GUESS).
 * @generated: the function that was there at that time, for code made at run time; NULL if unknown.
 * @id: number of the location, from 1.
 * @symbol: the functions, if the location was read with its names; NULL if they are to be looked
 *	up.
 */
struct shstk_location {
	const struct shstk_symmap *map;
	uint64_t pc;
	uint32_t how;
	uint32_t guessed;
	const struct shstk_perfmap_entry *generated;
	uint32_t id;
	const struct shstk_symbol *symbol;
};

/**
 * struct shstk_labels - labels that a program attached to some of its samples
 * @hh: link in the profile's table.
 * @nr: number of elements of @text.
 * @text: a key, its value, the next key, and so on, sorted by key, then by value. This is the key
 *	of the table.
 */
struct shstk_labels {
	UT_hash_handle hh;
	size_t nr;
	const char *text[];
};

/**
 * struct shstk_record - the sum of all equal samples
 * @hh: link in the profile's table.
 * @values: the sum of each value type; it lies in memory behind @locations.
 * @number: index in the profile's list of records.
 * @guessed: shstk_profile_enter() got a stack with a guessed entry.
 * @proc: the process.
 * @comm: name of the thread.
 * @labels: labels of the samples, or NULL.
 * @tid: thread ID.
 * @note: enum shstk_note: the frame that is shown above the outermost one.
 * @pad: 0, as it is part of the key.
 * @nr: number of elements of @locations.
 * @locations: indexes into the profile's locations, innermost first.
 */
struct shstk_record {
	UT_hash_handle hh;
	int64_t *values;
	size_t number;
	bool guessed;
	struct shstk_symproc *proc;
	const char *comm;
	const struct shstk_labels *labels;
	int32_t tid;
	uint16_t note;
	uint16_t pad;
	uint64_t nr;
	uint32_t locations[];
};

/* Returns the name of the frame of an enum shstk_note, such as "[truncated]". */
const char *shstk_note_name(int note);

/* Number of threads whose last sample a profile remembers: as many as run at the same time. */
#define SHSTK_LAST_THREADS 256

/**
 * struct shstk_last - the entries of the sample of a thread that was added last
 * @proc: the process of that sample.
 * @changes: value of @changes of @proc at that time, which tells whether its mappings are still the
 *	same.
 * @nr: number of entries.
 * @max: number of entries that @entries has room for.
 * @entries: outermost first: address, how it is looked up, whether it was guessed, and index into the
 *	profile's locations.
 */
struct shstk_last {
	const struct shstk_symproc *proc;
	uint64_t changes;
	size_t nr;
	size_t max;
	struct shstk_last_entry {
		uint64_t pc;
		uint16_t how;
		uint16_t guessed;
		uint32_t location;
	} * entries;
};

/**
 * struct shstk_location_table - finds locations by their keys
 * @slots: a location and the hash of its key, in the first slot that was free from the place on that
 *	the hash chooses; NULL if free.
 * @nr: number of slots in use, at most half of them.
 * @max: number of slots, a power of two, or 0.
 *
 * A table of many CPUs' processes is larger than the cache, so a search is as fast as few cache lines
 * are fetched: mostly one of @slots, and the location itself.
 */
struct shstk_location_table {
	struct shstk_location_slot {
		struct shstk_location *location;
		uint32_t hash;
	} * slots;
	size_t nr;
	size_t max;
};

struct shstk_keep;
struct shstk_named_map;
struct shstk_named_entry;

/**
 * struct shstk_named_proc - a process of which only the process ID was read
 * @hh: link in the profile's table.
 * @pid: the process ID, or -1 if it is unknown; this is the key.
 * @proc: the view of the process.
 */
struct shstk_named_proc {
	UT_hash_handle hh;
	int pid;
	struct shstk_symproc *proc;
};

/**
 * struct shstk_profile - a profile
 * @symbols: symbol store that names the addresses.
 * @text: pool of the store, for all strings.
 * @pool: memory of records, locations and labels.
 * @types: value types.
 * @nr_types: number of value types.
 * @period_type: what one event stands for.
 * @period: amount between two events, in the unit of @period_type.
 * @start: beginning of the recording, in ns since 1970.
 * @duration: length of the recording, in ns.
 * @totals: sum of all samples, for each value type.
 * @guessed: sum of the samples whose stacks have a guessed entry, for each value type; not of
 *	samples that were read.
 * @comments: lines of free text.
 * @nr_comments: number of comments.
 * @cautions: lines about what the profile lacks or knows only roughly.
 * @nr_cautions: number of cautions.
 * @table: records by process, thread, stack and labels.
 * @records: the same records, in the order in which they were added.
 * @nr_records: number of records.
 * @max_records: number of records that @records has room for.
 * @label_table: sets of labels, each kept once.
 * @serial: number of the profile and of its reset, other than all others.
 * @location_table: locations by address and mapping, but not those that came with their names.
 * @locations: all locations, by number.
 * @nr_locations: number of locations.
 * @max_locations: number of locations that @locations has room for.
 * @prepared: number of locations, of the first, that shstk_profile_prepare() has seen.
 * @named_maps: mappings that were read from files.
 * @named: entries of stacks that were read from files.
 * @named_procs: processes that were read from files.
 * @nr_sources: number of files that were read.
 * @default_type: default type of the file that was read, from 1; 0: the last type.
 * @moments: times of the samples.
 * @lives: when processes began and ended.
 * @nr_lives: number of elements of @lives.
 * @max_lives: number of elements that @lives has room for.
 * @keep: the file that samples are written to as they are added, or NULL.
 * @main_pid: process ID of the command that was started, or 0.
 * @main_map: mapping of the program of the command, where the profile was read, or NULL.
 * @title: title of the recording that was read, or NULL.
 * @origin: time of samples at which the recording began, 0: not known.
 * @scratch: record that is compared with those in @table.
 * @max_scratch: bytes in @scratch.
 * @last: the last samples of threads, each in the place that process and thread choose.
 */
struct shstk_profile {
	struct shstk_symbols *symbols;
	struct shstk_pool *text;
	struct shstk_pool pool;
	struct shstk_value_type types[SHSTK_PROFILE_MAX_TYPES];
	unsigned int nr_types;
	struct shstk_value_type period_type;
	int64_t period;
	int64_t start;
	int64_t duration;
	int64_t totals[SHSTK_PROFILE_MAX_TYPES];
	int64_t guessed[SHSTK_PROFILE_MAX_TYPES];
	const char **comments;
	size_t nr_comments;
	const char **cautions;
	size_t nr_cautions;
	struct shstk_record *table;
	struct shstk_record **records;
	size_t nr_records;
	size_t max_records;
	struct shstk_labels *label_table;
	uint64_t serial;
	struct shstk_location_table location_table;
	struct shstk_location **locations;
	size_t nr_locations;
	size_t max_locations;
	size_t prepared;
	struct shstk_named_map *named_maps;
	struct shstk_named_entry *named;
	struct shstk_named_proc *named_procs;
	unsigned int nr_sources;
	unsigned int default_type;
	struct shstk_moments moments;
	struct shstk_life *lives;
	size_t nr_lives;
	size_t max_lives;
	struct shstk_keep *keep;
	int main_pid;
	const struct shstk_symmap *main_map;
	const char *title;
	uint64_t origin;
	struct shstk_record *scratch;
	size_t max_scratch;
	struct shstk_last last[SHSTK_LAST_THREADS];
};

/* Returns the sum of two values, which stays at the limit instead of wrapping around. */
static inline int64_t shstk_add(int64_t a, int64_t b)
{
	int64_t sum;

	if (!__builtin_add_overflow(a, b, &sum))
		return sum;
	return b < 0 ? INT64_MIN : INT64_MAX;
}

/*
 * Returns the mapping of the program of the command that was started, or NULL if it is not known or
 * no sample was in it.
 */
const struct shstk_symmap *shstk_profile_main_map(const struct shstk_profile *profile);

/* Prefix that marks the cautions among the comments of the pprof format. */
#define SHSTK_CAUTION_MARK "caution: "

/* Adds a location that is not entered in the table; returns NULL when memory runs out. */
struct shstk_location *shstk_location_add(struct shstk_profile *profile,
					  const struct shstk_location *key);
/* Releases what shstk_profile_name() and shstk_profile_name_map() took (named.c). */
void shstk_named_deinit(struct shstk_profile *profile);

/*
 * Returns the functions of an entry that was read as a symbol of the profile's store; NULL when
 * memory runs out (named.c).
 */
const struct shstk_symbol *shstk_named_symbol(struct shstk_profile *profile,
					      const struct shstk_named *named);

/*
 * Reads the names of all locations that are new, by several threads if they are many
 * (prepare.c). To be called before the first of many calls of shstk_location_symbol().
 */
void shstk_profile_prepare(struct shstk_profile *profile);

/* Returns the functions at a location, looked up unless the location has them; never NULL. */
const struct shstk_symbol *shstk_location_symbol(const struct shstk_profile *profile,
						 const struct shstk_location *location);

/* Returns the value type that a format with one value shows: opts->type, or the default one. */
unsigned int shstk_shown_type(const struct shstk_profile *profile,
			      const struct shstk_write_opts *opts);

/**
 * struct shstk_format - an output format
 * @name: name of the format.
 * @suffixes: file name endings that select it, separated by blanks; the first is the usual one.
 * @write: writes the profile; returns 0 or a negative errno. It need not look at the stream's error
 *	state.
 */
struct shstk_format {
	const char *name;
	const char *suffixes;
	int (*write)(const struct shstk_profile *profile, FILE *out,
		     const struct shstk_write_opts *opts);
};

extern const struct shstk_format shstk_format_pprof;
extern const struct shstk_format shstk_format_pb;
extern const struct shstk_format shstk_format_folded;
extern const struct shstk_format shstk_format_svg;
extern const struct shstk_format shstk_format_perf;
extern const struct shstk_format shstk_format_top;
extern const struct shstk_format shstk_format_json;
extern const struct shstk_format shstk_format_html;
extern const struct shstk_format shstk_format_speedscope;
extern const struct shstk_format shstk_format_firefox;
extern const struct shstk_format shstk_format_trace;
extern const struct shstk_format shstk_format_callgrind;
extern const struct shstk_format shstk_format_shstk;

/* ---- tree.c: all stacks as one tree, outermost frame at the root ---- */

/**
 * enum shstk_node_kind - what a frame is, which decides how it is shown
 * @SHSTK_NODE_ROOT: the root of the tree.
 * @SHSTK_NODE_THREAD: name of a command or thread.
 * @SHSTK_NODE_NOTE: a frame named by shstk_note_name().
 * @SHSTK_NODE_CODE: a function.
 * @SHSTK_NODE_INLINED: a function inlined into its parent.
 * @SHSTK_NODE_MADE: code made at run time, named by a perf-map.
 * @SHSTK_NODE_LANGUAGE: a function that an interpreter ran.
 * @SHSTK_NODE_UNKNOWN: an address without a name.
 * @SHSTK_NODE_GUESSED: a function that was found on the stack by guessing.
 */
enum shstk_node_kind {
	SHSTK_NODE_ROOT,
	SHSTK_NODE_THREAD,
	SHSTK_NODE_NOTE,
	SHSTK_NODE_CODE,
	SHSTK_NODE_INLINED,
	SHSTK_NODE_MADE,
	SHSTK_NODE_LANGUAGE,
	SHSTK_NODE_UNKNOWN,
	SHSTK_NODE_GUESSED,
};

/**
 * struct shstk_node - a frame with all stacks that go through it
 * @hh: link in the tree's table; the key is @parent and @name.
 * @parent: frame that called it.
 * @name: name that is shown.
 * @kind: enum shstk_node_kind.
 * @self: sum of the values of the stacks that end here.
 * @total: sum of the values of all stacks that go through here.
 * @self_before: @self in the profile that this one is compared with.
 * @total_before: @total in the profile that this one is compared with.
 * @child: first callee, by name.
 * @next: next callee of @parent.
 */
struct shstk_node {
	UT_hash_handle hh;
	struct shstk_node *parent;
	const char *name;
	int kind;
	int64_t self;
	int64_t total;
	int64_t self_before;
	int64_t total_before;
	struct shstk_node *child;
	struct shstk_node *next;
};

/**
 * struct shstk_tree - all stacks as a tree
 * @pool: memory of the tree.
 * @table: nodes by parent and name.
 * @root: the root.
 * @depth: number of levels below @root.
 * @top: the node above the stack that was added last.
 * @path: the entries of the stack that was added last, outermost first: for each the location, and
 *	the node that it led to.
 * @nr_path: number of elements of @path.
 * @max_path: number of elements that @path has room for.
 */
struct shstk_tree {
	struct shstk_pool pool;
	struct shstk_node *table;
	struct shstk_node *root;
	unsigned int depth;
	const struct shstk_node *top;
	struct shstk_tree_step {
		uint32_t location;
		struct shstk_node *node;
	} * path;
	size_t nr_path;
	size_t max_path;
};

/*
 * Builds the tree of all stacks, as @opts says. Returns 0, or -ENOMEM and nothing has to be
 * released; otherwise shstk_tree_deinit() releases the tree.
 */
int shstk_tree_build(const struct shstk_profile *profile, const struct shstk_write_opts *opts,
		     struct shstk_tree *tree);
void shstk_tree_deinit(struct shstk_tree *tree);
/* Returns the node after @node, parents before children; NULL at the end. */
struct shstk_node *shstk_tree_next(const struct shstk_node *node);

#endif /* SHSTK_EXPORT_H */
