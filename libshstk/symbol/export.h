/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * export.h - what a format needs: the profile's content and one interface.
 *
 * To add a format: write export_NAME.c with a struct shstk_format, declare it
 * here and name it in the table of export.c.
 *
 * All strings of a profile live in the pool of its symbol store; two equal
 * ones are the same pointer.
 */
#ifndef SHSTK_EXPORT_H
#define SHSTK_EXPORT_H

#include <stdio.h>

#include "moments.h"
#include "private.h"
#include "profile.h"

/**
 * struct shstk_value_type - what one value of a sample measures
 * @type: "cpu".
 * @unit: "nanoseconds".
 * @note: what is said beside @type, or NULL.
 */
struct shstk_value_type {
	const char *type;
	const char *unit;
	const char *note;
};

/**
 * struct shstk_location - an address of a stack
 * @hh: in the profile's table.
 * @map: the mapping at the time of the sample, and
 * @pc: the address as it was captured, and
 * @how: enum shstk_symaddr, and
 * @made: the function there then, of code made at run time, if it was known: the key.
 * @id: number of the location, from 1.
 * @symbol: its functions, if it came with them; NULL: they are looked up.
 */
struct shstk_location {
	UT_hash_handle hh;
	const struct shstk_symmap *map;
	uint64_t pc;
	uint64_t how;
	const struct shstk_perfmap_entry *made;
	uint32_t id;
	const struct shstk_symbol *symbol;
};

/**
 * struct shstk_labels - what a program said of some of its samples
 * @hh: in the profile's table.
 * @nr: number of elements of @text.
 * @text: a key, its value, the next key: sorted by key, then by value. The key of the table.
 */
struct shstk_labels {
	UT_hash_handle hh;
	size_t nr;
	const char *text[];
};

/**
 * struct shstk_record - all equal samples
 * @hh: in the profile's table.
 * @values: their sums; memory behind @locations.
 * @number: its place in the profile's list of records.
 * @proc: the process.
 * @comm: name of the thread.
 * @labels: its labels, or NULL.
 * @tid: thread ID.
 * @note: enum shstk_note, the frame above the outermost one.
 * @nr: number of elements of @locations.
 * @locations: indexes into the profile's locations, innermost first.
 */
struct shstk_record {
	UT_hash_handle hh;
	int64_t *values;
	size_t number;
	struct shstk_symproc *proc;
	const char *comm;
	const struct shstk_labels *labels;
	int32_t tid;
	uint16_t note;
	uint16_t pad;
	uint64_t nr;
	uint32_t locations[];
};

/* Name of a frame, "[truncated]" and the like. */
const char *shstk_note_name(int note);

/**
 * struct shstk_last - the entries of the sample that was added last
 * @proc: its process,
 * @changes: with what that had mapped.
 * @nr: number of entries, room for @max.
 * @entries: outermost first: address, how it is looked up, index into the profile's locations.
 */
struct shstk_last {
	const struct shstk_symproc *proc;
	uint64_t changes;
	size_t nr;
	size_t max;
	struct shstk_last_entry {
		uint64_t pc;
		uint32_t how;
		uint32_t location;
	} * entries;
};

struct shstk_named_map;
struct shstk_named_entry;

/**
 * struct shstk_named_proc - a process of which only the number was read
 * @hh: in the profile's table.
 * @pid: its number, or -1; the key.
 * @proc: its view.
 */
struct shstk_named_proc {
	UT_hash_handle hh;
	int pid;
	struct shstk_symproc *proc;
};

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
	const char **comments;
	size_t nr_comments;
	const char **cautions;
	size_t nr_cautions;
	struct shstk_record *table;
	struct shstk_record **records;
	size_t nr_records;
	size_t max_records;
	struct shstk_labels *label_table;
	struct shstk_location *location_table;
	struct shstk_location **locations;
	size_t nr_locations;
	size_t max_locations;
	struct shstk_named_map *named_maps;
	struct shstk_named_entry *named;
	struct shstk_named_proc *named_procs;
	unsigned int nr_sources; /* files that were read */
	unsigned int default_type; /* from 1, of what was read; 0: the last one */
	struct shstk_moments moments;
	struct shstk_record *scratch;
	size_t max_scratch;
	struct shstk_last last;
};

/* Sum that stays at the limit instead of wrapping around. */
static inline int64_t shstk_add(int64_t a, int64_t b)
{
	int64_t sum;

	if (!__builtin_add_overflow(a, b, &sum))
		return sum;
	return b < 0 ? INT64_MIN : INT64_MAX;
}

/* Before cautions among pprof's comments. */
#define SHSTK_CAUTION_MARK "caution: "

/* A location that no table finds; NULL when memory runs out. */
struct shstk_location *shstk_location_add(struct shstk_profile *profile,
					  const struct shstk_location *key);
/* named.c: give back what shstk_profile_name() and the like took. */
void shstk_named_deinit(struct shstk_profile *profile);

const struct shstk_symbol *shstk_location_symbol(const struct shstk_profile *profile,
						 const struct shstk_location *location);

/* The value type that a format with one value shows: opts->type, or the last. */
unsigned int shstk_shown_type(const struct shstk_profile *profile,
			      const struct shstk_write_opts *opts);

/**
 * struct shstk_format - a format
 * @name: its name.
 * @suffixes: file name endings that mean it, separated by blanks; the first
 *	is the usual one.
 * @write: write the profile; returns 0 or a negative errno. Need not look at
 *	the stream's error state.
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

/* ---- tree.c: all stacks as one tree, outermost frame at the root ---- */

/**
 * enum shstk_node_kind - how to show a frame
 * @SHSTK_NODE_ROOT: the one root of all.
 * @SHSTK_NODE_THREAD: name of a command or thread.
 * @SHSTK_NODE_NOTE: shstk_note_name().
 * @SHSTK_NODE_CODE: a function.
 * @SHSTK_NODE_INLINED: a function inlined into its parent.
 * @SHSTK_NODE_MADE: code made at run time, named by a perf-map.
 * @SHSTK_NODE_UNKNOWN: an address without a name.
 */
enum shstk_node_kind {
	SHSTK_NODE_ROOT,
	SHSTK_NODE_THREAD,
	SHSTK_NODE_NOTE,
	SHSTK_NODE_CODE,
	SHSTK_NODE_INLINED,
	SHSTK_NODE_MADE,
	SHSTK_NODE_UNKNOWN,
};

/**
 * struct shstk_node - a frame with all stacks that go through it
 * @hh: in the tree's table.
 * @parent: frame that called it, and
 * @name: what is shown: the key.
 * @kind: enum shstk_node_kind.
 * @self: value of the stacks that end here.
 * @total: value of all stacks.
 * @self_before: value of the stacks that end here in the profile that this one is compared with.
 * @total_before: value of all stacks there.
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
 * struct shstk_tree - all stacks
 * @pool: its memory.
 * @table: nodes by parent and name.
 * @root: the root.
 * @depth: levels below it.
 * @top: the node above the stack that was added last, and
 * @path: for each of its entries, outermost first: the location, and the node that it led to;
 * @nr_path: so many, room for @max_path.
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

int shstk_tree_build(const struct shstk_profile *profile, const struct shstk_write_opts *opts,
		     struct shstk_tree *tree);
void shstk_tree_deinit(struct shstk_tree *tree);
/* The node after @node, parents before children; NULL at the end. */
struct shstk_node *shstk_tree_next(const struct shstk_node *node);

#endif /* SHSTK_EXPORT_H */
