// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * export_callgrind.c - the format of valgrind's callgrind, for KCachegrind and callgrind_annotate.
 *
 * For each function there are its own costs by line, and for each function that it calls the costs
 * of the calls by line: those of all stacks in which one calls the other. All value types are in
 * the file, the shown one first. Each inlined function is a function of its own; the name of a
 * command or thread is the caller of its outermost functions.
 *
 * A stack counts once for a call, however often the call is in it. A function that calls itself is
 * written without that call, so that its own cost and its calls are the sum of the stacks that it
 * is in, unless it calls itself through others.
 *
 * Names have numbers: "(1) name" where one comes first, then "(1)".
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kind.h"
#include "format_rows.h"

#define EVENT_ROOM 40 /* bytes of an event's name */
#define NO_FUNCTION SIZE_MAX
#define UNKNOWN "???" /* the name that callgrind has for what it does not know */

/**
 * struct callgrind_function - a function
 * @name: its name.
 * @module: name of its module; "" if it is not known.
 * @file: its source file, or NULL.
 * @line: line at which it begins, or 0.
 */
struct callgrind_function {
	const char *name;
	const char *module;
	const char *file;
	unsigned int line;
};

/**
 * struct cost - what was spent at a line of a function
 * @function: number of the function.
 * @callee: number of the function that is called there, or NO_FUNCTION: these are its own costs.
 * @line: the line, or 0.
 * @values: the sum of each value type.
 */
struct cost {
	size_t function;
	size_t callee;
	unsigned int line;
	int64_t values[SHSTK_PROFILE_MAX_TYPES];
};

/**
 * struct callgrind - a file being written
 * @profile: the profile.
 * @out: the output.
 * @failed: memory ran out.
 * @pool: memory of the rows.
 * @function_rows: numbers of functions.
 * @functions: the functions by number.
 * @nr_functions: number of elements of @functions.
 * @max_functions: number of elements that @functions has room for.
 * @cost_rows: numbers of costs.
 * @costs: the costs by number.
 * @nr_costs: number of elements of @costs.
 * @max_costs: number of elements that @costs has room for.
 * @call_rows: numbers of the pairs of functions of which one calls the other.
 * @seen: for each of @call_rows the number of the last record that it was in, plus 1.
 * @nr_seen: number of elements of @seen.
 * @max_seen: number of elements that @seen has room for.
 * @totals: the sum of each value type.
 * @order: the value types in the order in which they are written.
 * @samples: index of the value type that counts samples, or -1.
 * @objects: numbers of the modules' names in the file.
 * @files: numbers of the source files' names in the file.
 * @names: numbers of the functions' names in the file.
 */
struct callgrind {
	const struct shstk_profile *profile;
	FILE *out;
	bool failed;
	struct shstk_pool pool;
	struct shstk_rows function_rows;
	struct callgrind_function *functions;
	size_t nr_functions;
	size_t max_functions;
	struct shstk_rows cost_rows;
	struct cost *costs;
	size_t nr_costs;
	size_t max_costs;
	struct shstk_rows call_rows;
	size_t *seen;
	size_t nr_seen;
	size_t max_seen;
	int64_t totals[SHSTK_PROFILE_MAX_TYPES];
	unsigned int order[SHSTK_PROFILE_MAX_TYPES];
	int samples;
	struct shstk_rows objects;
	struct shstk_rows files;
	struct shstk_rows names;
};

/**
 * struct callgrind_walk - the way from the outermost function of a stack to the innermost one
 * @record: the stack.
 * @function: number of the function that was reached, or NO_FUNCTION.
 * @line: the line that it is at.
 */
struct callgrind_walk {
	const struct shstk_record *record;
	size_t function;
	unsigned int line;
};

/* ---- Costs ---- */

/* Returns the number of a row, and in @made whether it is new. When memory runs out it is 0. */
static size_t get_row(struct callgrind *c, struct shstk_rows *table,
		      const uintptr_t key[SHSTK_ROW_KEY], bool *made)
{
	return shstk_rows_number(table, &c->pool, key, made, &c->failed);
}

/* Returns the pool's copy of a text; "" when memory runs out. */
static const char *keep(struct callgrind *c, const char *text)
{
	const char *ret = shstk_pool_text(c->profile->text, text, strlen(text));

	c->failed |= !ret;
	return ret ? ret : "";
}

static size_t get_function(struct callgrind *c, const struct callgrind_function *function)
{
	const uintptr_t key[SHSTK_ROW_KEY] = { (uintptr_t)function->name,
					       (uintptr_t)function->module,
					       (uintptr_t)function->file };
	struct callgrind_function *functions;
	bool made;
	size_t id = get_row(c, &c->function_rows, key, &made);

	if (!made)
		return id;
	functions =
		shstk_grow(c->functions, c->nr_functions, &c->max_functions, sizeof(*functions));
	if (!functions) {
		c->failed = true;
		return 0;
	}
	c->functions = functions;
	c->functions[c->nr_functions++] = *function;
	return id;
}

/* Returns the costs of a call from a line, or of the line itself; NULL when memory runs out. */
static struct cost *get_cost(struct callgrind *c, size_t function, size_t callee, unsigned int line)
{
	const uintptr_t key[SHSTK_ROW_KEY] = { function, callee, line };
	struct cost *costs;
	bool made;
	size_t id = get_row(c, &c->cost_rows, key, &made);

	if (!made)
		return c->failed ? NULL : &c->costs[id];
	costs = shstk_grow(c->costs, c->nr_costs, &c->max_costs, sizeof(*costs));
	if (!costs) {
		c->failed = true;
		return NULL;
	}
	c->costs = costs;
	c->costs[c->nr_costs] =
		(struct cost){ .function = function, .callee = callee, .line = line };
	return &c->costs[c->nr_costs++];
}

/* Adds the values of a record; the format has none below 0. */
static void add_values(const struct callgrind *c, int64_t *sums, const struct shstk_record *record)
{
	for (unsigned int i = 0; i < c->profile->nr_types; i++)
		if (record->values[i] > 0)
			sums[i] = shstk_add(sums[i], record->values[i]);
}

static void add_cost(struct callgrind *c, const struct callgrind_walk *walk, size_t callee)
{
	struct cost *cost = get_cost(c, walk->function, callee, walk->line);

	if (cost)
		add_values(c, cost->values, walk->record);
}

/* Returns whether a call is in a stack for the first time. */
static bool is_first(struct callgrind *c, const struct callgrind_walk *walk, size_t callee)
{
	const uintptr_t key[SHSTK_ROW_KEY] = { walk->function, callee };
	const size_t mark = walk->record->number + 1;
	bool made;
	size_t id = get_row(c, &c->call_rows, key, &made), *seen;

	if (made) {
		seen = shstk_grow(c->seen, c->nr_seen, &c->max_seen, sizeof(*seen));
		if (!seen) {
			c->failed = true;
			return false;
		}
		c->seen = seen;
		c->seen[c->nr_seen++] = 0;
	}
	if (c->failed || c->seen[id] == mark)
		return false;
	c->seen[id] = mark;
	return true;
}

/* Goes on to the next function of a stack, which is at a line. */
static void step(struct callgrind *c, struct callgrind_walk *walk,
		 const struct callgrind_function *function, unsigned int line)
{
	size_t callee = get_function(c, function);

	if (c->failed)
		return;
	if (walk->function != NO_FUNCTION && walk->function != callee && is_first(c, walk, callee))
		add_cost(c, walk, callee);
	walk->function = callee;
	walk->line = line;
}

static void step_into(struct callgrind *c, struct callgrind_walk *walk,
		      const struct shstk_location *location)
{
	const struct shstk_symbol *symbol = shstk_location_symbol(c->profile, location);
	const char *module = keep(c, shstk_module_of(location));

	for (unsigned int i = symbol->nr; i-- && !c->failed;) {
		const struct shstk_symframe *frame = symbol->frames + i;
		const struct callgrind_function function = { frame->function, module, frame->file,
							     frame->start_line };

		step(c, walk, &function, frame->line);
	}
}

static void add_record(struct callgrind *c, const struct shstk_record *record)
{
	struct callgrind_walk walk = { .record = record, .function = NO_FUNCTION };
	const bool empty = !record->nr && !record->note;
	struct callgrind_function top = { .module = keep(c, "") };

	if (*record->comm || empty) {
		top.name = *record->comm ? record->comm : keep(c, "[no name]");
		top.file = keep(c, "[thread]");
		step(c, &walk, &top, 0);
	}
	if (record->note) {
		top.name = keep(c, shstk_note_name(record->note));
		top.file = NULL;
		step(c, &walk, &top, 0);
	}
	for (uint64_t i = record->nr; i-- && !c->failed;)
		step_into(c, &walk, c->profile->locations[record->locations[i]]);
	if (!c->failed)
		add_cost(c, &walk, NO_FUNCTION);
	add_values(c, c->totals, record);
}

/* Own costs come before those of calls. */
static int by_function(const void *a, const void *b)
{
	const struct cost *x = a, *y = b;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	if (x->callee != y->callee)
		return x->callee + 1 < y->callee + 1 ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

/* ---- Text ---- */

/* Writes "WHAT=(NUMBER) NAME", or without the name where that was written before. */
static void put_name(struct callgrind *c, const char *what, struct shstk_rows *table,
		     const char *name)
{
	const uintptr_t key[SHSTK_ROW_KEY] = { (uintptr_t)name };
	bool made;
	size_t id = get_row(c, table, key, &made);

	fprintf(c->out, "%s=(%zu)", what, id + 1);
	if (made) {
		/* Readers skip blanks, and take a number alone for one that has a name already. */
		name = name ? name + strspn(name, " ") : "";
		fprintf(c->out, " %s", *name ? name : UNKNOWN);
	}
	putc('\n', c->out);
}

static void put_values(const struct callgrind *c, const int64_t *values)
{
	for (unsigned int i = 0; i < c->profile->nr_types; i++)
		fprintf(c->out, " %lld", (long long)values[c->order[i]]);
	putc('\n', c->out);
}

/* Writes a call with its costs. The number of calls is not known; that of samples is given. */
static void put_call(struct callgrind *c, const struct cost *cost)
{
	const struct callgrind_function *callee = &c->functions[cost->callee];
	int64_t calls = c->samples < 0 ? 1 : cost->values[c->samples];

	put_name(c, "cob", &c->objects, callee->module);
	put_name(c, "cfi", &c->files, callee->file);
	put_name(c, "cfn", &c->names, callee->name);
	fprintf(c->out, "calls=%lld %u\n", calls > 0 ? (long long)calls : 1ll, callee->line);
}

static void put_costs(struct callgrind *c)
{
	for (size_t i = 0; i < c->nr_costs && !c->failed; i++) {
		const struct cost *cost = &c->costs[i];
		const struct callgrind_function *function = &c->functions[cost->function];

		if (!i || cost[-1].function != cost->function) {
			putc('\n', c->out);
			put_name(c, "ob", &c->objects, function->module);
			put_name(c, "fl", &c->files, function->file);
			put_name(c, "fn", &c->names, function->name);
		}
		if (cost->callee != NO_FUNCTION)
			put_call(c, cost);
		fprintf(c->out, "%u", cost->line);
		put_values(c, cost->values);
	}
}

/*
 * Makes the name of an event, in which there are only letters and digits, from that of a value
 * type, whose index is @index. "value" and the index is the name where that of the type is of no
 * use, so no type itself gives such a name.
 */
static void event_name(char *buf, const char *type, unsigned int index)
{
	size_t len = 0;

	for (; *type && len < EVENT_ROOM - 4; type++)
		if (isascii(*type) && isalnum((unsigned char)*type))
			buf[len++] = *type;
	buf[len] = '\0';
	if (!isalpha((unsigned char)*buf) || !strncmp(buf, "value", 5))
		snprintf(buf, EVENT_ROOM, "value%u", index);
}

static void put_events(struct callgrind *c)
{
	char names[SHSTK_PROFILE_MAX_TYPES][EVENT_ROOM];

	for (unsigned int i = 0; i < c->profile->nr_types; i++) {
		const struct shstk_value_type *type = &c->profile->types[c->order[i]];

		event_name(names[i], type->type, i);
		for (unsigned int k = 0; k < i; k++)
			if (!strcmp(names[k], names[i]))
				snprintf(names[i], EVENT_ROOM, "value%u", i);
		fprintf(c->out, "event: %s : %s (%s)\n", names[i], type->type, type->unit);
	}
	fputs("events:", c->out);
	for (unsigned int i = 0; i < c->profile->nr_types; i++)
		fprintf(c->out, " %s", names[i]);
	/* There must be one. */
	fputs(c->profile->nr_types ? "\n" : " samples\n", c->out);
}

static void put_head(struct callgrind *c, const char *title)
{
	const struct shstk_profile *profile = c->profile;

	fputs("# callgrind format\nversion: 1\ncreator: shstk\n", c->out);
	fprintf(c->out, "cmd: %s\n", title ? keep(c, title) : "shstk");
	for (size_t i = 0; i < profile->nr_cautions; i++)
		fprintf(c->out, "desc: Caution: %s\n", profile->cautions[i]);
	for (size_t i = 0; i < profile->nr_comments; i++)
		fprintf(c->out, "desc: Comment: %s\n", profile->comments[i]);
	fputs("positions: line\n", c->out);
	put_events(c);
	fputs("summary:", c->out);
	put_values(c, c->totals);
}

/* The shown type comes first: readers sort by it. */
static void choose_order(struct callgrind *c, unsigned int shown)
{
	unsigned int nr = 0;

	c->samples = -1;
	c->order[nr++] = shown;
	for (unsigned int i = 0; i < c->profile->nr_types; i++) {
		if (i != shown)
			c->order[nr++] = i;
		if (!strcmp(c->profile->types[i].type, "samples"))
			c->samples = i;
	}
}

static void deinit(struct callgrind *c)
{
	shstk_rows_deinit(&c->function_rows);
	shstk_rows_deinit(&c->cost_rows);
	shstk_rows_deinit(&c->call_rows);
	shstk_rows_deinit(&c->objects);
	shstk_rows_deinit(&c->files);
	shstk_rows_deinit(&c->names);
	free(c->functions);
	free(c->costs);
	free(c->seen);
	shstk_pool_deinit(&c->pool);
}

static int write_callgrind(const struct shstk_profile *profile, FILE *out,
			   const struct shstk_write_opts *opts)
{
	struct callgrind c = { .profile = profile, .out = out };

	shstk_pool_init(&c.pool);
	choose_order(&c, shstk_shown_type(profile, opts));
	for (size_t i = 0; i < profile->nr_records && !c.failed; i++)
		add_record(&c, profile->records[i]);
	if (c.nr_costs)
		qsort(c.costs, c.nr_costs, sizeof(*c.costs), by_function);
	if (!c.failed) {
		put_head(&c, opts->title);
		put_costs(&c);
		fputs("\ntotals:", out);
		put_values(&c, c.totals);
	}
	deinit(&c);
	return c.failed ? -ENOMEM : 0;
}

const struct shstk_format shstk_format_callgrind = {
	.name = "callgrind",
	.suffixes = ".callgrind",
	.write = write_callgrind,
};
