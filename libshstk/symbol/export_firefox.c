// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * export_firefox.c - the JSON of profiler.firefox.com: its processed profile format, version 55.
 *
 * The viewer reads this version and makes later ones of it. It is the last one in which each thread
 * has all its tables, which Perfetto reads as well. A table is made of columns; its rows
 * refer to each other by number:
 *
 *   stackTable     a frame, and the stack that it is called from (prefix)
 *   frameTable     a function at a line; its category is what kind of code it is
 *   funcTable      a name in a source file and in a module (resource)
 *   resourceTable  the modules
 *   stringArray    all texts
 *   samples        stack, time and weight
 *   markers        why and how long the thread was off the CPU; when its process began and ended
 *
 * Values that are changes of a level, such as of the memory in use, are a counter of each process.
 *
 * Each thread is made and written before the next one, so there is memory for one at a time. The
 * names are final, so no addresses and no libraries are given.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "items.h"
#include "json.h"
#include "kind.h"
#include "lives.h"
#include "format_rows.h"
#include "waits.h"

#define VERSION 55 /* of the processed profile format */
#define GECKO_VERSION 31 /* of the browser's own format at that time; readers want some number */
#define RESOURCE_LIBRARY 1 /* type of a resource */
#define PHASE_INSTANT 0 /* of a marker */
#define PHASE_INTERVAL 1

/* The categories have the numbers of the kinds. One has to be grey: it is the default. */
static const struct {
	const char *name, *color;
} categories[SHSTK_KINDS] = {
	[SHSTK_KIND_NOTE] = { "Other", "grey" },
	[SHSTK_KIND_NATIVE] = { "Native", "yellow" },
	[SHSTK_KIND_INLINED] = { "Inlined", "green" },
	[SHSTK_KIND_KERNEL] = { "Kernel", "orange" },
	[SHSTK_KIND_MADE] = { "Made at run time", "purple" },
	[SHSTK_KIND_PYTHON] = { "Python", "blue" },
	[SHSTK_KIND_JAVA] = { "Java", "red" },
	[SHSTK_KIND_JAVASCRIPT] = { "JavaScript", "magenta" },
	[SHSTK_KIND_GO] = { "Go", "lightblue" },
	[SHSTK_KIND_UNKNOWN] = { "Without name", "brown" },
	[SHSTK_KIND_GUESSED] = { "Guessed", "lightred" },
};

/* Columns of a thread's tables. A value of -1 means that there is none. */
enum {
	STACK_PREFIX,
	STACK_FRAME,
	FRAME_FUNC,
	FRAME_CATEGORY,
	FRAME_DEPTH,
	FRAME_LINE,
	FUNC_NAME,
	FUNC_RESOURCE,
	FUNC_FILE,
	FUNC_LINE,
	RESOURCE_NAME,
	COLUMNS,
};

/**
 * struct shown_frame - what a frame shows
 * @function: name of the function.
 * @module: name of the module, or "".
 * @file: source file, or NULL.
 * @start_line: line at which the function begins, or 0.
 * @line: line that was executed, or 0.
 * @depth: how many functions at the same address this one is inlined into.
 * @kind: what kind of code it is.
 */
struct shown_frame {
	const char *function;
	const char *module;
	const char *file;
	unsigned int start_line;
	unsigned int line;
	unsigned int depth;
	enum shstk_kind kind;
};

/**
 * struct firefox - a file being written
 * @profile: the profile.
 * @json: the output.
 * @failed: memory ran out.
 * @pool: memory of the rows of the thread that is written.
 * @strings: its texts.
 * @resources: numbers of its modules.
 * @funcs: numbers of its functions.
 * @frames: numbers of its frames.
 * @stacks: numbers of its stacks.
 * @columns: its tables.
 * @tid_pool: memory of @tids.
 * @tids: thread IDs of the threads that are written.
 * @tid_uses: how often each of @tids was written.
 * @lives: when processes began and ended.
 * @nr_lives: number of elements of @lives.
 * @process: name of the process whose threads are written.
 * @main: index of the first sample of its main thread, or SIZE_MAX.
 * @head: the same, or index of the first sample of its first thread.
 */
struct firefox {
	const struct shstk_profile *profile;
	struct json json;
	bool failed;
	struct shstk_pool pool;
	struct shstk_texts strings;
	struct shstk_rows resources;
	struct shstk_rows funcs;
	struct shstk_rows frames;
	struct shstk_rows stacks;
	struct shstk_column columns[COLUMNS];
	struct shstk_pool tid_pool;
	struct shstk_rows tids;
	struct shstk_column tid_uses;
	struct shstk_life *lives;
	size_t nr_lives;
	const char *process;
	size_t main;
	size_t head;
};

/* ---- The tables of a thread ---- */

static void add(struct firefox *f, struct shstk_column *column, int64_t value)
{
	f->failed |= !shstk_column_add(column, value);
}

/* Returns the number of a row, and in @made whether it is new. When memory runs out it is 0. */
static size_t get_row(struct firefox *f, struct shstk_rows *table,
		      const uintptr_t key[SHSTK_ROW_KEY], bool *made)
{
	return shstk_rows_number(table, &f->pool, key, made, &f->failed);
}

/* Returns the pool's copy of a text; "" when memory runs out. */
static const char *keep(struct firefox *f, const char *text)
{
	const char *ret = shstk_pool_text(f->profile->text, text, strlen(text));

	f->failed |= !ret;
	return ret ? ret : "";
}

/* Returns the number of a text of the pool; -1 if it is NULL. */
static int64_t text_number(struct firefox *f, const char *text)
{
	const int64_t id = text ? shstk_texts_get(&f->strings, &f->pool, text) : -1;

	f->failed |= text && id < 0;
	return id;
}

/* Returns the number of a module; -1 if it is not known. */
static int64_t get_resource(struct firefox *f, const char *module)
{
	bool made;
	size_t id;

	if (!*module)
		return -1;
	id = get_row(f, &f->resources, (uintptr_t[SHSTK_ROW_KEY]){ (uintptr_t)module }, &made);
	if (made)
		add(f, &f->columns[RESOURCE_NAME], text_number(f, module));
	return id;
}

static int64_t get_func(struct firefox *f, const struct shown_frame *place)
{
	const uintptr_t key[SHSTK_ROW_KEY] = { (uintptr_t)place->function, (uintptr_t)place->module,
					       (uintptr_t)place->file };
	bool made;
	size_t id = get_row(f, &f->funcs, key, &made);

	if (!made)
		return id;
	add(f, &f->columns[FUNC_NAME], text_number(f, place->function));
	add(f, &f->columns[FUNC_RESOURCE], get_resource(f, place->module));
	add(f, &f->columns[FUNC_FILE], text_number(f, place->file));
	add(f, &f->columns[FUNC_LINE], place->start_line ? (int64_t)place->start_line : -1);
	return id;
}

static int64_t get_frame(struct firefox *f, const struct shown_frame *place)
{
	const int64_t func = get_func(f, place);
	const uintptr_t key[SHSTK_ROW_KEY] = { func, place->line, place->depth, place->kind };
	bool made;
	size_t id = get_row(f, &f->frames, key, &made);

	if (!made)
		return id;
	add(f, &f->columns[FRAME_FUNC], func);
	add(f, &f->columns[FRAME_CATEGORY], place->kind);
	add(f, &f->columns[FRAME_DEPTH], place->depth);
	add(f, &f->columns[FRAME_LINE], place->line ? (int64_t)place->line : -1);
	return id;
}

/* Returns the stack that consists of a frame and of the stack @prefix, -1: of no other frame. */
static int64_t get_stack(struct firefox *f, int64_t prefix, const struct shown_frame *place)
{
	const int64_t frame = get_frame(f, place);
	const uintptr_t key[SHSTK_ROW_KEY] = { prefix + 1, frame };
	bool made;
	size_t id = get_row(f, &f->stacks, key, &made);

	if (made) {
		add(f, &f->columns[STACK_PREFIX], prefix);
		add(f, &f->columns[STACK_FRAME], frame);
	}
	return id;
}

/* Adds the functions at a location, the innermost one last. Returns the new stack. */
static int64_t add_location(struct firefox *f, int64_t stack, const struct shstk_location *location)
{
	const struct shstk_symbol *symbol = shstk_location_symbol(f->profile, location);
	const char *module = keep(f, shstk_module_of(location));

	for (unsigned int i = symbol->nr; i--;) {
		const struct shstk_symframe *frame = symbol->frames + i;
		const struct shown_frame place = {
			.function = frame->function,
			.module = module,
			.file = frame->file,
			.start_line = frame->start_line,
			.line = frame->line,
			.depth = symbol->nr - 1 - i,
			.kind = shstk_kind_of(location, symbol, frame),
		};

		stack = get_stack(f, stack, &place);
	}
	return stack;
}

/* Returns the number of a record's stack; -1 if it is empty. */
static int64_t add_stack(struct firefox *f, const struct shstk_record *record)
{
	int64_t stack = -1;

	if (record->note) {
		const struct shown_frame place = {
			.function = keep(f, shstk_note_name(record->note)),
			.module = keep(f, ""),
			.kind = SHSTK_KIND_NOTE,
		};

		stack = get_stack(f, stack, &place);
	}
	for (uint64_t i = record->nr; i-- && !f->failed;)
		stack = add_location(f, stack, f->profile->locations[record->locations[i]]);
	return stack;
}

/* Makes the tables empty for the next thread. */
static void reset(struct firefox *f)
{
	struct shstk_rows *const tables[] = { &f->resources, &f->funcs, &f->frames, &f->stacks };

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		shstk_rows_deinit(tables[i]);
		*tables[i] = (struct shstk_rows){ 0 };
	}
	for (int i = 0; i < COLUMNS; i++)
		f->columns[i].nr = 0;
	shstk_texts_reset(&f->strings);
	shstk_pool_deinit(&f->pool);
	shstk_pool_init(&f->pool);
}

/* ---- JSON ---- */

/* Writes a column, in which -1 is null. */
static void put_nullable(struct firefox *f, const char *name, const struct shstk_column *column)
{
	shstk_json_open(&f->json, name, '[');
	for (size_t i = 0; i < column->nr; i++) {
		if (column->v[i] < 0)
			shstk_json_null(&f->json, NULL);
		else
			shstk_json_int(&f->json, NULL, column->v[i]);
	}
	shstk_json_close(&f->json);
}

static void put_column(struct firefox *f, const char *name, const struct shstk_column *column)
{
	shstk_json_ints(&f->json, name, column->v, column->nr);
}

static void put_nulls(struct firefox *f, const char *name, size_t nr)
{
	shstk_json_open(&f->json, name, '[');
	for (size_t i = 0; i < nr; i++)
		shstk_json_null(&f->json, NULL);
	shstk_json_close(&f->json);
}

static void put_falses(struct firefox *f, const char *name, size_t nr)
{
	shstk_json_open(&f->json, name, '[');
	for (size_t i = 0; i < nr; i++)
		shstk_json_bool(&f->json, NULL, false);
	shstk_json_close(&f->json);
}

static void put_equal(struct firefox *f, const char *name, size_t nr, int value)
{
	shstk_json_open(&f->json, name, '[');
	for (size_t i = 0; i < nr; i++)
		shstk_json_int(&f->json, NULL, value);
	shstk_json_close(&f->json);
}

/* Ends a table of @nr rows. */
static void close_table(struct firefox *f, size_t nr)
{
	shstk_json_int(&f->json, "length", nr);
	shstk_json_close(&f->json);
}

static void put_stacks(struct firefox *f)
{
	shstk_json_open(&f->json, "stackTable", '{');
	put_nullable(f, "prefix", &f->columns[STACK_PREFIX]);
	put_column(f, "frame", &f->columns[STACK_FRAME]);
	close_table(f, f->columns[STACK_FRAME].nr);
}

static void put_frames(struct firefox *f)
{
	const size_t nr = f->columns[FRAME_FUNC].nr;

	shstk_json_open(&f->json, "frameTable", '{');
	put_equal(f, "address", nr, -1);
	put_column(f, "inlineDepth", &f->columns[FRAME_DEPTH]);
	put_column(f, "category", &f->columns[FRAME_CATEGORY]);
	put_equal(f, "subcategory", nr, 0);
	put_column(f, "func", &f->columns[FRAME_FUNC]);
	put_nulls(f, "nativeSymbol", nr);
	put_nulls(f, "innerWindowID", nr);
	put_nullable(f, "line", &f->columns[FRAME_LINE]);
	put_nulls(f, "column", nr);
	close_table(f, nr);
}

static void put_funcs(struct firefox *f)
{
	const size_t nr = f->columns[FUNC_NAME].nr;

	shstk_json_open(&f->json, "funcTable", '{');
	put_column(f, "name", &f->columns[FUNC_NAME]);
	put_falses(f, "isJS", nr);
	put_falses(f, "relevantForJS", nr);
	put_column(f, "resource", &f->columns[FUNC_RESOURCE]);
	put_nullable(f, "fileName", &f->columns[FUNC_FILE]);
	put_nullable(f, "lineNumber", &f->columns[FUNC_LINE]);
	put_nulls(f, "columnNumber", nr);
	close_table(f, nr);
}

static void put_resources(struct firefox *f)
{
	const size_t nr = f->columns[RESOURCE_NAME].nr;

	shstk_json_open(&f->json, "resourceTable", '{');
	put_column(f, "name", &f->columns[RESOURCE_NAME]);
	put_nulls(f, "lib", nr);
	put_nulls(f, "host", nr);
	put_equal(f, "type", nr, RESOURCE_LIBRARY);
	close_table(f, nr);
}

/* Writes a table without rows. The names of its columns end in NULL. */
static void put_empty(struct firefox *f, const char *name, const char *const *columns)
{
	shstk_json_open(&f->json, name, '{');
	for (; *columns; columns++)
		put_nulls(f, *columns, 0);
	close_table(f, 0);
}

/* ---- Markers ---- */

/* Returns the ID of the process of a sample; 0 if it is not known. */
static int pid_of(const struct shstk_items *items, size_t i)
{
	int pid = shstk_symproc_pid(items->v[i].record->proc);

	return pid < 0 ? 0 : pid;
}

/**
 * struct marker - what happened to a thread at a time, or for some time
 * @name: what it is called.
 * @start: when it began, in ns since the first sample.
 * @length: how long it lasted in ns, -1: it was an instant.
 * @wait: the sample that says why the thread was off the CPU, or NULL:
 * @life: the thread's process began or ended.
 */
struct marker {
	const char *name;
	uint64_t start;
	int64_t length;
	const struct shstk_record *wait;
	const struct shstk_life *life;
};

/* Writes what a marker says of a time off the CPU. */
static void put_wait(struct firefox *f, const struct shstk_record *record)
{
	const char *waker = shstk_record_label(record, "waker");

	shstk_json_string(&f->json, "type", "Wait");
	shstk_json_string(&f->json, "in", shstk_record_place(f->profile, record));
	if (waker)
		shstk_json_string(&f->json, "waker", waker);
}

/* Writes what a marker says of the beginning or the end of a process. */
static void put_life(struct firefox *f, const struct shstk_life *life)
{
	char *text;

	if (asprintf(&text, "%s (%d)", life->comm, life->pid) < 0) {
		f->failed = true;
		return;
	}
	shstk_json_string(&f->json, "type", "Process");
	shstk_json_string(&f->json, "process", text);
	free(text);
}

static void put_marker_data(struct firefox *f, const struct marker *list, size_t nr)
{
	shstk_json_open(&f->json, "data", '[');
	for (size_t i = 0; i < nr; i++) {
		shstk_json_open(&f->json, NULL, '{');
		if (list[i].wait)
			put_wait(f, list[i].wait);
		else
			put_life(f, list[i].life);
		shstk_json_close(&f->json);
	}
	shstk_json_close(&f->json);
}

static void put_marker_times(struct firefox *f, const struct marker *list, size_t nr)
{
	shstk_json_open(&f->json, "startTime", '[');
	for (size_t i = 0; i < nr; i++)
		shstk_json_millionth(&f->json, NULL, list[i].start);
	shstk_json_close(&f->json);
	shstk_json_open(&f->json, "endTime", '[');
	for (size_t i = 0; i < nr; i++) {
		if (list[i].length < 0)
			shstk_json_null(&f->json, NULL);
		else
			shstk_json_millionth(&f->json, NULL, list[i].start + list[i].length);
	}
	shstk_json_close(&f->json);
	shstk_json_open(&f->json, "phase", '[');
	for (size_t i = 0; i < nr; i++)
		shstk_json_int(&f->json, NULL, list[i].length < 0 ? PHASE_INSTANT : PHASE_INTERVAL);
	shstk_json_close(&f->json);
}

static void put_markers(struct firefox *f, const struct marker *list, size_t nr)
{
	shstk_json_open(&f->json, "markers", '{');
	put_marker_data(f, list, nr);
	shstk_json_open(&f->json, "name", '[');
	for (size_t i = 0; i < nr; i++)
		shstk_json_int(&f->json, NULL, text_number(f, keep(f, list[i].name)));
	shstk_json_close(&f->json);
	put_marker_times(f, list, nr);
	put_equal(f, "category", nr, SHSTK_KIND_NOTE);
	close_table(f, nr);
}

/* Lists the samples from @from to before @to that are off the CPU. Returns their number. */
static size_t list_waits(const struct shstk_items *items, size_t from, size_t to,
			 const struct shstk_value_type *type, struct marker *list)
{
	size_t nr = 0;

	for (size_t i = from; i < to; i++) {
		const struct shstk_item *item = &items->v[i];
		const char *state = shstk_record_state(type, item->record);

		if (state)
			list[nr++] = (struct marker){ .name = state,
						      .start = item->time,
						      .length = item->value,
						      .wait = item->record };
	}
	return nr;
}

/* Lists when a process began and ended. */
static void list_lives(const struct shstk_life *lives, size_t nr, struct marker *list)
{
	for (size_t i = 0; i < nr; i++)
		list[i] = (struct marker){ .name = shstk_life_name(&lives[i]),
					   .start = lives[i].time,
					   .length = -1,
					   .life = &lives[i] };
}

/*
 * Writes the markers of the thread whose samples are @from to before @to. What happened to its
 * process stands in one of its threads.
 */
static void put_thread_markers(struct firefox *f, const struct shstk_items *items, size_t from,
			       size_t to, const struct shstk_value_type *type)
{
	size_t nr_lives, nr;
	const struct shstk_life *lives =
		shstk_lives_of(f->lives, f->nr_lives, pid_of(items, from), &nr_lives);
	struct marker *list = calloc(to - from + nr_lives + 1, sizeof(*list));

	if (!list) {
		f->failed = true;
		return;
	}
	nr = list_waits(items, from, to, type, list);
	if (from == f->head) {
		list_lives(lives, nr_lives, list + nr);
		nr += nr_lives;
	}
	put_markers(f, list, nr);
	free(list);
}

static void put_tables(struct firefox *f)
{
	put_stacks(f);
	put_frames(f);
	put_funcs(f);
	put_resources(f);
	put_empty(f, "nativeSymbols",
		  (const char *const[]){ "libIndex", "address", "name", "functionSize", NULL });
	shstk_json_strings(&f->json, "stringArray", f->strings.v, f->strings.rows.nr);
}

/*
 * Writes the stacks of the samples from @from to before @to. All samples of a record are of one
 * thread, and come in no order, so the stack of each record is looked up once: @stacks has its
 * number plus 2, 1 for an empty one; 0: not yet.
 */
static void put_sample_stacks(struct firefox *f, const struct shstk_items *items, size_t from,
			      size_t to, int64_t *stacks)
{
	shstk_json_open(&f->json, "stack", '[');
	for (size_t i = from; i < to; i++) {
		const struct shstk_record *record = items->v[i].record;
		int64_t *stack = &stacks[record->number];

		if (!*stack)
			*stack = add_stack(f, record) + 2;
		if (*stack < 2)
			shstk_json_null(&f->json, NULL);
		else
			shstk_json_int(&f->json, NULL, *stack - 2);
	}
	shstk_json_close(&f->json);
}

static void put_times(struct firefox *f, const struct shstk_items *items, size_t from, size_t to)
{
	shstk_json_open(&f->json, "time", '[');
	for (size_t i = from; i < to; i++)
		shstk_json_millionth(&f->json, NULL, items->v[i].time);
	shstk_json_close(&f->json);
}

/* Writes the values of the samples; times in ms. */
static void put_weights(struct firefox *f, const struct shstk_items *items, size_t from, size_t to,
			const char *unit)
{
	const bool ns = !strcmp(unit, "nanoseconds"), bytes = !strcmp(unit, "bytes");

	shstk_json_string(&f->json, "weightType", ns ? "tracing-ms" : bytes ? "bytes" : "samples");
	shstk_json_open(&f->json, "weight", '[');
	for (size_t i = from; i < to; i++) {
		if (ns)
			shstk_json_millionth(&f->json, NULL, items->v[i].value);
		else
			shstk_json_int(&f->json, NULL, items->v[i].value);
	}
	shstk_json_close(&f->json);
}

/* Writes the CPU time since the sample before, by which the viewer draws how busy a thread was. */
static void put_cpu(struct firefox *f, const struct shstk_items *items, size_t from, size_t to)
{
	shstk_json_open(&f->json, "threadCPUDelta", '[');
	for (size_t i = from; i < to; i++)
		shstk_json_int(&f->json, NULL, items->v[i].value);
	shstk_json_close(&f->json);
}

static void put_samples(struct firefox *f, const struct shstk_items *items, size_t from, size_t to,
			const struct shstk_value_type *type, int64_t *stacks)
{
	shstk_json_open(&f->json, "samples", '{');
	put_sample_stacks(f, items, from, to, stacks);
	put_times(f, items, from, to);
	put_weights(f, items, from, to, type->unit);
	if (!strcmp(type->type, "cpu") && !strcmp(type->unit, "nanoseconds"))
		put_cpu(f, items, from, to);
	close_table(f, to - from);
}

/* Writes the thread ID, which the viewer takes for unique: "12", and "12.1" for a later thread. */
static void put_tid(struct firefox *f, int tid)
{
	bool made;
	const struct shstk_row *row = shstk_rows_get(
		&f->tids, &f->tid_pool, (uintptr_t[SHSTK_ROW_KEY]){ (uintptr_t)tid }, &made);
	char text[48];

	if (row && made)
		add(f, &f->tid_uses, 0);
	if (!row || f->failed) {
		f->failed = true;
		return;
	}
	if (made)
		snprintf(text, sizeof(text), "%d", tid);
	else
		snprintf(text, sizeof(text), "%d.%lld", tid, (long long)++f->tid_uses.v[row->id]);
	shstk_json_string(&f->json, "tid", text);
}

static int tid_of(const struct shstk_items *items, size_t i)
{
	int tid = items->v[i].record->tid;

	return tid < 0 ? 0 : tid;
}

/*
 * Finds the main thread of the process whose samples begin at @from. A thread that was renamed is
 * several ones here: the one with the most samples is taken.
 */
static void find_main(struct firefox *f, const struct shstk_items *items, size_t from)
{
	const int pid = pid_of(items, from);
	size_t most = 0, to;

	f->main = SIZE_MAX;
	f->head = from;
	f->process = items->v[from].record->comm;
	for (size_t i = from; i < items->nr && pid_of(items, i) == pid; i = to) {
		to = shstk_items_end(items, i);
		if (tid_of(items, i) != pid || to - i <= most)
			continue;
		most = to - i;
		f->main = f->head = i;
		f->process = items->v[i].record->comm;
	}
}

/* Writes when a process began and ended, as far as that is known. */
static void put_process_times(struct firefox *f, int pid)
{
	const struct shstk_life *began = NULL, *ended = NULL, *lives;
	size_t nr;

	lives = shstk_lives_of(f->lives, f->nr_lives, pid, &nr);
	for (size_t i = 0; i < nr; i++) {
		if (lives[i].ended)
			ended = &lives[i];
		else if (!began)
			began = &lives[i];
	}
	shstk_json_millionth(&f->json, "processStartupTime", began ? began->time : 0);
	if (ended)
		shstk_json_millionth(&f->json, "processShutdownTime", ended->time);
	else
		shstk_json_null(&f->json, "processShutdownTime");
}

/* Writes the head of the thread whose samples begin at @from. */
static void put_thread_head(struct firefox *f, const struct shstk_items *items, size_t from)
{
	const char *name = items->v[from].record->comm;
	const int pid = pid_of(items, from);
	char text[16];

	if (!from || pid_of(items, from - 1) != pid)
		find_main(f, items, from);
	snprintf(text, sizeof(text), "%d", pid);
	shstk_json_string(&f->json, "name", *name ? name : "all");
	shstk_json_string(&f->json, "processName", *f->process ? f->process : "all");
	shstk_json_string(&f->json, "processType", "default");
	shstk_json_string(&f->json, "pid", text);
	put_tid(f, tid_of(items, from));
	shstk_json_bool(&f->json, "isMainThread", from == f->main);
	put_process_times(f, pid);
	/* When threads began and ended is not known. */
	shstk_json_int(&f->json, "registerTime", 0);
	shstk_json_null(&f->json, "unregisterTime");
	put_nulls(f, "pausedRanges", 0);
}

static void put_threads(struct firefox *f, const struct shstk_items *items,
			const struct shstk_value_type *type, int64_t *stacks)
{
	size_t to;

	shstk_json_open(&f->json, "threads", '[');
	for (size_t from = 0; from < items->nr && !f->failed; from = to) {
		to = shstk_items_end(items, from);
		shstk_json_open(&f->json, NULL, '{');
		put_thread_head(f, items, from);
		put_samples(f, items, from, to, type, stacks);
		put_thread_markers(f, items, from, to, type);
		put_tables(f);
		shstk_json_close(&f->json);
		reset(f);
	}
	shstk_json_close(&f->json);
}

/*
 * Returns the number of the first thread of a process, among those that are written; SIZE_MAX if none
 * is, because the process has no value above 0.
 */
static size_t thread_of(const struct shstk_items *items, int pid)
{
	size_t number = 0, to;

	for (size_t from = 0; from < items->nr; from = to, number++) {
		if (pid_of(items, from) == pid)
			return number;
		to = shstk_items_end(items, from);
	}
	return SIZE_MAX;
}

/*
 * Writes the changes of a process, @list[0] to @list[nr - 1], in order of time: what changed at the
 * same time is one row.
 */
static void put_changes(struct firefox *f, const struct shstk_moment *const *list, size_t nr,
			uint64_t first, unsigned int type)
{
	int64_t sum = 0;
	size_t rows = 0;

	shstk_json_open(&f->json, "samples", '{');
	shstk_json_open(&f->json, "time", '[');
	for (size_t i = 0; i < nr; i++) {
		if (i + 1 < nr && list[i + 1]->time == list[i]->time)
			continue;
		shstk_json_millionth(&f->json, NULL, list[i]->time - first);
		rows++;
	}
	shstk_json_close(&f->json);
	shstk_json_open(&f->json, "count", '[');
	for (size_t i = 0; i < nr; i++) {
		sum = shstk_add(sum, list[i]->values[type]);
		if (i + 1 < nr && list[i + 1]->time == list[i]->time)
			continue;
		shstk_json_int(&f->json, NULL, sum);
		sum = 0;
	}
	shstk_json_close(&f->json);
	close_table(f, rows);
}

/*
 * Writes the counter of the process whose moments are @list[0] to @list[nr - 1]. A counter belongs to
 * a thread; a process without one has only values below 0, which are no level.
 */
static void put_counter(struct firefox *f, const struct shstk_items *items,
			const struct shstk_moment *const *list, size_t nr, uint64_t first,
			unsigned int type)
{
	const int pid = shstk_symproc_pid(list[0]->record->proc);
	const size_t thread = thread_of(items, pid < 0 ? 0 : pid);
	const struct shstk_value_type *kind = &f->profile->types[type];
	char text[16];

	if (thread == SIZE_MAX)
		return;
	snprintf(text, sizeof(text), "%d", pid < 0 ? 0 : pid);
	shstk_json_open(&f->json, NULL, '{');
	shstk_json_string(&f->json, "name", kind->type);
	shstk_json_string(&f->json, "category", strcmp(kind->unit, "bytes") ? "Other" : "Memory");
	shstk_json_string(&f->json, "description", "");
	shstk_json_string(&f->json, "pid", text);
	shstk_json_int(&f->json, "mainThreadIndex", thread);
	put_changes(f, list, nr, first, type);
	shstk_json_close(&f->json);
}

/* Writes a counter of each process, if values are changes of a level. */
static void put_counters(struct firefox *f, const struct shstk_items *items, unsigned int type)
{
	const struct shstk_profile *profile = f->profile;
	const size_t nr = profile->moments.nr;
	const struct shstk_moment **list;
	uint64_t first;
	size_t to;

	if (!nr || !shstk_type_is_level(profile, type))
		return;
	list = shstk_moments_by_process(profile, &first);
	f->failed |= !list;
	shstk_json_open(&f->json, "counters", '[');
	for (size_t from = 0; list && from < nr; from = to) {
		const int pid = shstk_symproc_pid(list[from]->record->proc);

		to = from + 1;
		while (to < nr && shstk_symproc_pid(list[to]->record->proc) == pid)
			to++;
		put_counter(f, items, list + from, to - from, first, type);
	}
	shstk_json_close(&f->json);
	free(list);
}

static void put_categories(struct json *json)
{
	shstk_json_open(json, "categories", '[');
	for (int i = 0; i < SHSTK_KINDS; i++) {
		shstk_json_open(json, NULL, '{');
		shstk_json_string(json, "name", categories[i].name);
		shstk_json_string(json, "color", categories[i].color);
		shstk_json_open(json, "subcategories", '[');
		shstk_json_string(json, NULL, "Other");
		shstk_json_close(json);
		shstk_json_close(json);
	}
	shstk_json_close(json);
}

static void put_lines(struct json *json, const char *label, const char *const *lines, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		shstk_json_open(json, NULL, '{');
		shstk_json_string(json, "label", label);
		shstk_json_string(json, "format", "string");
		shstk_json_string(json, "value", lines[i]);
		shstk_json_close(json);
	}
}

/* Writes what the viewer shows behind "profile info". */
static void put_extra(struct json *json, const struct shstk_profile *profile)
{
	shstk_json_open(json, "extra", '[');
	shstk_json_open(json, NULL, '{');
	shstk_json_string(json, "label", "Recording");
	shstk_json_open(json, "entries", '[');
	put_lines(json, "Caution", profile->cautions, profile->nr_cautions);
	put_lines(json, "Comment", profile->comments, profile->nr_comments);
	shstk_json_close(json);
	shstk_json_close(json);
	shstk_json_close(json);
}

static void put_units(struct json *json)
{
	shstk_json_open(json, "sampleUnits", '{');
	shstk_json_string(json, "time", "ms");
	shstk_json_string(json, "eventDelay", "ms");
	shstk_json_string(json, "threadCPUDelta", "ns");
	shstk_json_close(json);
}

/* Writes the time between two samples. The viewer needs one above 0. */
static void put_interval(struct json *json, const struct shstk_profile *profile)
{
	const char *unit = profile->period_type.unit;
	bool known = unit && !strcmp(unit, "nanoseconds") && profile->period > 0;

	shstk_json_millionth(json, "interval", known ? profile->period : 1000000);
}

static void put_field(struct json *json, const char *key, const char *label)
{
	shstk_json_open(json, NULL, '{');
	shstk_json_string(json, "key", key);
	shstk_json_string(json, "label", label);
	shstk_json_string(json, "format", "string");
	shstk_json_close(json);
}

/* Says how markers of a type are shown, before their fields. @label is what stands beside them. */
static void open_schema(struct json *json, const char *type, const char *tooltip, const char *label)
{
	static const char *const places[] = { "marker-chart", "marker-table", "timeline-overview" };

	shstk_json_open(json, NULL, '{');
	shstk_json_string(json, "name", type);
	shstk_json_strings(json, "display", places, sizeof(places) / sizeof(*places));
	shstk_json_string(json, "tooltipLabel", tooltip);
	shstk_json_string(json, "tableLabel", label);
	shstk_json_string(json, "chartLabel", label);
	shstk_json_open(json, "fields", '[');
}

static void close_schema(struct json *json)
{
	shstk_json_close(json);
	shstk_json_close(json);
}

static void put_schemas(struct json *json)
{
	shstk_json_open(json, "markerSchema", '[');
	open_schema(json, "Wait", "{marker.name} in {marker.data.in}", "{marker.data.in}");
	put_field(json, "in", "In");
	put_field(json, "waker", "Ended by");
	close_schema(json);
	open_schema(json, "Process", "{marker.name}: {marker.data.process}",
		    "{marker.data.process}");
	put_field(json, "process", "Process");
	close_schema(json);
	shstk_json_close(json);
}

static void put_meta(struct json *json, const struct shstk_profile *profile, const char *title)
{
	shstk_json_open(json, "meta", '{');
	shstk_json_int(json, "version", GECKO_VERSION);
	shstk_json_int(json, "preprocessedProfileVersion", VERSION);
	shstk_json_string(json, "product", title ? title : "shstk");
	shstk_json_string(json, "importedFrom", "shstk");
	put_interval(json, profile);
	shstk_json_millionth(json, "startTime", profile->start > 0 ? profile->start : 0);
	shstk_json_int(json, "processType", 0);
	shstk_json_int(json, "stackwalk", 1);
	shstk_json_bool(json, "debug", false);
	shstk_json_bool(json, "symbolicated", true);
	shstk_json_bool(json, "usesOnlyOneStackType", true);
	shstk_json_bool(json, "sourceCodeIsNotOnSearchfox", true);
	put_units(json);
	put_categories(json);
	put_schemas(json);
	put_extra(json, profile);
	shstk_json_close(json);
}

static void put_file(struct firefox *f, const struct shstk_items *items, unsigned int type,
		     const char *title, int64_t *stacks)
{
	static const struct shstk_value_type none = { .type = "", .unit = "" };

	shstk_json_open(&f->json, NULL, '{');
	put_meta(&f->json, f->profile, title);
	put_nulls(f, "libs", 0);
	put_threads(f, items, f->profile->nr_types ? &f->profile->types[type] : &none, stacks);
	if (f->profile->nr_types)
		put_counters(f, items, type);
	shstk_json_close(&f->json);
}

static void deinit(struct firefox *f)
{
	reset(f);
	shstk_pool_deinit(&f->pool);
	shstk_rows_deinit(&f->tids);
	shstk_pool_deinit(&f->tid_pool);
	for (int i = 0; i < COLUMNS; i++)
		free(f->columns[i].v);
	free(f->tid_uses.v);
	free(f->lives);
	shstk_texts_deinit(&f->strings);
}

static int write_firefox(const struct shstk_profile *profile, FILE *out,
			 const struct shstk_write_opts *opts)
{
	struct firefox f = { .profile = profile, .json = { .out = out } };
	unsigned int type = shstk_shown_type(profile, opts);
	struct shstk_items items;
	int64_t *stacks;
	int err = shstk_items_make(profile, type, &items);

	if (err)
		return err;
	shstk_pool_init(&f.pool);
	shstk_pool_init(&f.tid_pool);
	stacks = calloc(profile->nr_records + 1, sizeof(*stacks));
	f.lives = shstk_lives_shown(profile, items.first, &f.nr_lives);
	if (stacks && f.lives)
		put_file(&f, &items, type, opts->title, stacks);
	else
		f.failed = true;
	free(stacks);
	deinit(&f);
	shstk_items_deinit(&items);
	return f.failed ? -ENOMEM : 0;
}

const struct shstk_format shstk_format_firefox = {
	.name = "firefox",
	.suffixes = ".firefox.json",
	.write = write_firefox,
};
