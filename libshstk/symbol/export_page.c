// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * export_page.c - a profile as one HTML page, which any browser opens and which loads nothing.
 *
 * The page is page/page.html with the style, the scripts and the data put into it. The data is
 * JSON, packed by gzip and written in base64, so no name of the profile stands in the page's own
 * text. It is made of columns: the i-th element of each column belongs to the i-th thing.
 *
 *   title, comments, cautions, start, duration, icicle, inverted, perThread
 *   types      type, unit and note of each value type; shown: the one that is shown first
 *   diff       whether there are two value types: before and after
 *   strings    all texts; the columns of texts hold indexes into it
 *   frames     a function of a module: name, label and brief (shorter forms of the name),
 *              module, file, line
 *   stacks     a frame with all its callers: parent (the distance to the row of the caller in
 *              this table, 0: there is none), frame, kind (an index into kinds)
 *   kinds      what the code of a frame is: "native", "inlined", ...
 *   processes  pid, name: the name of the main thread, or of the program
 *   threads    process, tid, name
 *   labels     set, key, value: the pairs of each set of labels
 *   samples    stack (-1: an empty one), thread (-1: it is not known), labels (a set, 0: none)
 *   values     a column for each value type, with a value for each sample
 *   moments    when samples were taken: slot (ns in which equal samples are one), time (us since
 *              the moment before), sample, and values as above. Where all values of a type are
 *              equal there is one number instead of the column; lives: when processes that have
 *              samples began and ended: process ID, us since the first moment, 1: it ended
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "export.h"
#include "json.h"
#include "kind.h"
#include "lives.h"
#include "format_rows.h"

#define LABEL_ROOM 60 /* characters of a name where there is some room */
#define BRIEF_ROOM 24 /* characters of a name where there is little room */
#define LEVEL 6 /* compression level of zlib */
#define LINE 96 /* bytes that one line of base64 encodes; a multiple of 3 */

/* Embeds a file of the page/ folder as a string that ends in a zero. */
#define EMBED(name, file)                                              \
	__asm__(".pushsection .rodata, \"a\"\n"                        \
		".globl " #name "\n.hidden " #name "\n" #name ":\n"    \
		".incbin \"libshstk/symbol/page/" file "\"\n.byte 0\n" \
		".popsection");                                        \
	extern const char name[] __attribute__((visibility("hidden")))

EMBED(shstk_page_html, "page.html");
EMBED(shstk_page_style, "page.css");
EMBED(shstk_page_model, "model.js");
EMBED(shstk_page_flame, "flame.js");
EMBED(shstk_page_list, "list.js");
EMBED(shstk_page_timeline, "timeline.js");
EMBED(shstk_page_view, "view.js");
EMBED(shstk_page_head, "head.js");
EMBED(shstk_page_graph, "graph.js");
EMBED(shstk_page_times, "times.js");
EMBED(shstk_page_tables, "tables.js");
EMBED(shstk_page_begin, "page.js");

/* The columns of a page that have a fixed name. */
enum {
	FRAME_NAME,
	FRAME_LABEL,
	FRAME_BRIEF,
	FRAME_MODULE,
	FRAME_FILE,
	FRAME_LINE,
	STACK_PARENT,
	STACK_FRAME,
	STACK_KIND,
	PROCESS_PID,
	PROCESS_NAME,
	THREAD_PROCESS,
	THREAD_TID,
	THREAD_NAME,
	LABEL_SET,
	LABEL_KEY,
	LABEL_VALUE,
	SAMPLE_STACK,
	SAMPLE_THREAD,
	SAMPLE_LABELS,
	COLUMNS,
};

/**
 * struct step - an entry of the stack that was added last
 * @location: index of its location.
 * @stack: the row of the table of stacks that it led to.
 */
struct step {
	uint32_t location;
	int64_t stack;
};

/**
 * struct page - a page being made
 * @text: pool in which each text is kept once.
 * @pool: memory of the tables' rows.
 * @failed: memory ran out.
 * @strings: the texts.
 * @frames: numbers of the frames.
 * @stacks: numbers of the stacks.
 * @processes: numbers of the processes.
 * @threads: numbers of the threads.
 * @labels: numbers of the sets of labels.
 * @names: process names by process, as the main thread was called last.
 * @columns: the columns, see the head of this file.
 * @values: a column for each value type.
 * @nr_values: number of columns in @values.
 * @path: the entries of the stack that was added last, outermost first.
 * @nr_path: number of elements of @path.
 * @max_path: number of elements that @path has room for.
 * @path_note: enum shstk_note of the stack that was added last.
 */
struct page {
	struct shstk_pool *text;
	struct shstk_pool pool;
	bool failed;
	struct shstk_texts strings;
	struct shstk_rows frames, stacks, processes, threads, labels;
	struct shstk_rows names;
	struct shstk_column columns[COLUMNS];
	struct shstk_column values[SHSTK_PROFILE_MAX_TYPES];
	unsigned int nr_values;
	struct step *path;
	size_t nr_path;
	size_t max_path;
	int path_note;
};

static void add(struct page *page, struct shstk_column *column, int64_t value)
{
	page->failed |= !shstk_column_add(column, value);
}

/*
 * Returns the number of the thing that @key stands for in a table. @made receives whether it is
 * new; then the caller must fill its columns. When memory runs out, the number is 0 and
 * @page->failed is set.
 */
static size_t get_row(struct page *page, struct shstk_rows *table,
		      const uintptr_t key[SHSTK_ROW_KEY], bool *made)
{
	return shstk_rows_number(table, &page->pool, key, made, &page->failed);
}

/* Returns the pool's copy of a string; "" if it is NULL or memory runs out. */
static const char *keep(struct page *page, const char *text)
{
	const char *ret = shstk_pool_text(page->text, text ? text : "", text ? strlen(text) : 0);

	page->failed |= !ret;
	return ret ? ret : "";
}

static void add_text(struct page *page, int column, const char *text)
{
	const int64_t id = shstk_texts_get(&page->strings, &page->pool, keep(page, text));

	page->failed |= id < 0;
	add(page, &page->columns[column], id);
}

static void add_label(struct page *page, int column, const char *name, size_t room)
{
	char buf[SHSTK_LABEL_MAX];

	add_text(page, column, shstk_label(name, room, buf, sizeof(buf)));
}

static int64_t get_frame(struct page *page, const char *name, const char *module,
			 const struct shstk_symframe *frame)
{
	const uintptr_t key[SHSTK_ROW_KEY] = { (uintptr_t)name, (uintptr_t)module };
	bool made;
	size_t id = get_row(page, &page->frames, key, &made);

	if (!made)
		return id;
	add_text(page, FRAME_NAME, name);
	add_label(page, FRAME_LABEL, name, LABEL_ROOM);
	add_label(page, FRAME_BRIEF, name, BRIEF_ROOM);
	add_text(page, FRAME_MODULE, module);
	add_text(page, FRAME_FILE, frame ? frame->file : NULL);
	add(page, &page->columns[FRAME_LINE],
	    !frame	      ? 0 :
	    frame->start_line ? frame->start_line :
				frame->line);
	return id;
}

/*
 * Returns the row of a frame on a stack, which is called by the row @parent, or by none if that is
 * -1.
 */
static int64_t get_stack(struct page *page, int64_t parent, int64_t frame, enum shstk_kind kind)
{
	const uintptr_t key[SHSTK_ROW_KEY] = { parent + 1, frame };
	bool made;
	size_t id = get_row(page, &page->stacks, key, &made);

	if (!made)
		return id;
	add(page, &page->columns[STACK_PARENT], parent < 0 ? 0 : (int64_t)id - parent);
	add(page, &page->columns[STACK_FRAME], frame);
	add(page, &page->columns[STACK_KIND], kind);
	return id;
}

static bool begins_with(const char *text, const char *begin)
{
	return !strncmp(text, begin, strlen(begin));
}

/*
 * Adds the functions at an address, the innermost one last. Returns the row of the innermost one.
 */
static int64_t add_location(struct page *page, const struct shstk_profile *profile,
			    uint32_t location, int64_t stack)
{
	const struct shstk_location *at = profile->locations[location];
	const struct shstk_symbol *symbol = shstk_location_symbol(profile, at);
	const char *module = keep(page, shstk_module_of(at));

	for (unsigned int i = symbol->nr; i--;) {
		const struct shstk_symframe *frame = symbol->frames + i;
		int64_t id = get_frame(page, frame->function, module, frame);

		stack = get_stack(page, stack, id, shstk_kind_of(at, symbol, frame));
	}
	return stack;
}

/* Returns the row of the frame that stands above a stack; -1 if there is none. */
static int64_t add_note(struct page *page, int note)
{
	int64_t frame;

	if (!note)
		return -1;
	frame = get_frame(page, keep(page, shstk_note_name(note)), keep(page, ""), NULL);
	return get_stack(page, -1, frame, SHSTK_KIND_NOTE);
}

static void keep_step(struct page *page, uint32_t location, int64_t stack)
{
	struct step *path = shstk_grow(page->path, page->nr_path, &page->max_path, sizeof(*path));

	if (!path) {
		page->failed = true;
		return;
	}
	page->path = path;
	page->path[page->nr_path++] = (struct step){ location, stack };
}

/*
 * Returns the row of a record's stack. The part that it shares with the stack before is not looked
 * up again.
 */
static int64_t add_stack(struct page *page, const struct shstk_profile *profile,
			 const struct shstk_record *record)
{
	int64_t stack = add_note(page, record->note);
	size_t i = 0;

	while (record->note == page->path_note && i < page->nr_path && i < record->nr &&
	       page->path[i].location == record->locations[record->nr - 1 - i])
		stack = page->path[i++].stack;
	page->nr_path = i;
	page->path_note = record->note;
	for (; i < record->nr && !page->failed; i++) {
		uint32_t location = record->locations[record->nr - 1 - i];

		stack = add_location(page, profile, location, stack);
		keep_step(page, location, stack);
	}
	return stack;
}

/* ---- Processes and threads ---- */

/* Keeps the name of a process, which is the last name of its main thread. */
static void note_main_thread(struct page *page, const struct shstk_record *record)
{
	const uintptr_t key[SHSTK_ROW_KEY] = { (uintptr_t)record->proc };
	struct shstk_row *row;
	bool made;

	if (record->tid < 0 || record->tid != shstk_symproc_pid(record->proc) || !*record->comm)
		return;
	row = shstk_rows_get(&page->names, &page->pool, key, &made);
	if (row)
		row->id = (uintptr_t)record->comm;
	else
		page->failed = true;
}

/* Returns the name of the program on a stack: the outermost file that is no library. */
static const char *program_of(const struct shstk_profile *profile,
			      const struct shstk_record *record)
{
	for (size_t i = record->nr; i--;) {
		const struct shstk_symmap *map = profile->locations[record->locations[i]]->map;

		if (map->kind == SHSTK_SYMMAP_FILE && !strstr(map->name, ".so"))
			return map->name;
	}
	return "";
}

static const char *process_name(struct page *page, const struct shstk_profile *profile,
				const struct shstk_record *record)
{
	const uintptr_t key[SHSTK_ROW_KEY] = { (uintptr_t)record->proc };
	int pid = shstk_symproc_pid(record->proc);
	const struct shstk_row *row;

	if (pid < 0)
		return "";
	/*
	 * The main thread of a process that executes another program has another name from then on:
	 * that is another row.
	 */
	if (record->tid == pid && *record->comm)
		return record->comm;
	row = shstk_rows_find(&page->names, key);
	return row ? (const char *)(uintptr_t)row->id : program_of(profile, record);
}

static int64_t get_process(struct page *page, const struct shstk_profile *profile,
			   const struct shstk_record *record)
{
	const char *name = keep(page, process_name(page, profile, record));
	int pid = shstk_symproc_pid(record->proc);
	bool made;
	size_t id = get_row(page, &page->processes,
			    (uintptr_t[SHSTK_ROW_KEY]){ pid, (uintptr_t)name }, &made);

	if (made) {
		add(page, &page->columns[PROCESS_PID], pid);
		add_text(page, PROCESS_NAME, name);
	}
	return id;
}

/*
 * Returns the number of a thread; -1 if nothing is known of it, as in some profiles of other
 * programs.
 */
static int64_t get_thread(struct page *page, const struct shstk_profile *profile,
			  const struct shstk_record *record)
{
	uintptr_t key[SHSTK_ROW_KEY] = { 0, record->tid };
	bool made;
	size_t id;

	if (!*record->comm && record->tid < 0 && shstk_symproc_pid(record->proc) < 0)
		return -1;
	key[0] = get_process(page, profile, record);
	key[2] = (uintptr_t)keep(page, record->comm);
	id = get_row(page, &page->threads, key, &made);
	if (made) {
		add(page, &page->columns[THREAD_PROCESS], key[0]);
		add(page, &page->columns[THREAD_TID], record->tid);
		add_text(page, THREAD_NAME, record->comm);
	}
	return id;
}

/* Returns the number of a set of labels, 0 if it is NULL. */
static int64_t get_labels(struct page *page, const struct shstk_labels *labels)
{
	bool made;
	size_t id;

	if (!labels)
		return 0;
	id = get_row(page, &page->labels, (uintptr_t[SHSTK_ROW_KEY]){ (uintptr_t)labels }, &made);
	for (size_t i = 0; made && i < labels->nr; i += 2) {
		add(page, &page->columns[LABEL_SET], id + 1);
		add_text(page, LABEL_KEY, labels->text[i]);
		add_text(page, LABEL_VALUE, labels->text[i + 1]);
	}
	return id + 1;
}

/* ---- Samples ---- */

static void add_record(struct page *page, const struct shstk_profile *profile,
		       const struct shstk_record *record)
{
	add(page, &page->columns[SAMPLE_STACK], add_stack(page, profile, record));
	add(page, &page->columns[SAMPLE_THREAD], get_thread(page, profile, record));
	add(page, &page->columns[SAMPLE_LABELS], get_labels(page, record->labels));
}

static void add_profile(struct page *page, const struct shstk_profile *profile)
{
	for (size_t i = 0; i < profile->nr_records; i++)
		note_main_thread(page, profile->records[i]);
	page->nr_path = 0;
	for (size_t i = 0; i < profile->nr_records && !page->failed; i++)
		add_record(page, profile, profile->records[i]);
}

static void add_values(struct page *page, const struct shstk_profile *profile)
{
	page->nr_values = profile->nr_types;
	for (unsigned int t = 0; t < profile->nr_types; t++)
		for (size_t i = 0; i < profile->nr_records; i++)
			add(page, &page->values[t], profile->records[i]->values[t]);
}

/*
 * Adds the values of a comparison. The samples of either profile have the value 0 on the other
 * side.
 */
static void add_sides(struct page *page, const struct shstk_profile *before,
		      const struct shstk_profile *after, unsigned int type)
{
	page->nr_values = 2;
	for (size_t i = 0; i < before->nr_records; i++) {
		add(page, &page->values[0], before->records[i]->values[type]);
		add(page, &page->values[1], 0);
	}
	for (size_t i = 0; i < after->nr_records; i++) {
		add(page, &page->values[0], 0);
		add(page, &page->values[1], after->records[i]->values[type]);
	}
}

/* ---- JSON ---- */

static void put_column(struct json *json, const char *name, const struct shstk_column *column)
{
	shstk_json_ints(json, name, column->v, column->nr);
}

/* Writes the columns from @column on as one object. @names has a name for each, then NULL. */
static void put_table(struct json *json, const struct page *page, const char *name, int column,
		      const char *const *names)
{
	shstk_json_open(json, name, '{');
	for (; *names; names++)
		put_column(json, *names, &page->columns[column++]);
	shstk_json_close(json);
}

/*
 * Writes a comment or caution. In a comparison, @what tells which profile it comes from; otherwise
 * it is NULL.
 */
static void put_line(struct json *json, const char *what, const char *line)
{
	char *text;

	if (!what) {
		shstk_json_string(json, NULL, line);
	} else if (asprintf(&text, "%s: %s", what, line) >= 0) {
		shstk_json_string(json, NULL, text);
		free(text);
	}
}

static void put_notes(struct json *json, const char *what, const struct shstk_profile *profile,
		      bool cautions)
{
	const char *const *lines = cautions ? profile->cautions : profile->comments;
	const size_t nr = cautions ? profile->nr_cautions : profile->nr_comments;

	for (size_t i = 0; i < nr; i++)
		put_line(json, what, lines[i]);
}

static void put_all_notes(struct json *json, const struct shstk_profile *base,
			  const struct shstk_profile *profile, bool cautions)
{
	shstk_json_open(json, cautions ? "cautions" : "comments", '[');
	if (base)
		put_notes(json, "before", base, cautions);
	put_notes(json, base ? "after" : NULL, profile, cautions);
	shstk_json_close(json);
}

static void put_type(struct json *json, const char *type, const char *unit, const char *note)
{
	shstk_json_open(json, NULL, '{');
	shstk_json_string(json, "type", type);
	shstk_json_string(json, "unit", unit);
	shstk_json_string(json, "note", note);
	shstk_json_close(json);
}

static void put_types(struct json *json, const struct shstk_profile *profile,
		      const struct shstk_write_opts *opts)
{
	const unsigned int shown = shstk_shown_type(profile, opts);
	const struct shstk_value_type *types = profile->types;

	shstk_json_open(json, "types", '[');
	if (opts->base) {
		put_type(json, "before", types[shown].unit, types[shown].type);
		put_type(json, "after", types[shown].unit, types[shown].type);
	}
	for (unsigned int i = 0; !opts->base && i < profile->nr_types; i++)
		put_type(json, types[i].type, types[i].unit, types[i].note);
	shstk_json_close(json);
	shstk_json_int(json, "shown", opts->base ? 1 : shown);
	shstk_json_bool(json, "diff", opts->base);
}

static void put_head(struct json *json, const struct shstk_profile *profile,
		     const struct shstk_write_opts *opts)
{
	shstk_json_string(json, "title", opts->title ? opts->title : "Profile");
	put_all_notes(json, opts->base, profile, false);
	put_all_notes(json, opts->base, profile, true);
	shstk_json_int(json, "start", profile->start);
	shstk_json_int(json, "duration", profile->duration);
	shstk_json_bool(json, "icicle", opts->icicle);
	shstk_json_bool(json, "inverted", opts->inverted);
	shstk_json_bool(json, "perThread", opts->per_thread);
	put_types(json, profile, opts);
}

/* ---- Times ---- */

static int by_time(const void *a, const void *b)
{
	const struct shstk_moment *x = *(const struct shstk_moment *const *)a;
	const struct shstk_moment *y = *(const struct shstk_moment *const *)b;

	return x->time < y->time ? -1 : x->time > y->time;
}

static void put_times(struct json *json, const struct shstk_moment *const *list, size_t nr)
{
	uint64_t before = nr ? list[0]->time / 1000 : 0;

	shstk_json_open(json, "time", '[');
	for (size_t i = 0; i < nr; i++) {
		shstk_json_int(json, NULL, list[i]->time / 1000 - before);
		before = list[i]->time / 1000;
	}
	shstk_json_close(json);
	shstk_json_open(json, "sample", '[');
	for (size_t i = 0; i < nr; i++)
		shstk_json_int(json, NULL, list[i]->record->number);
	shstk_json_close(json);
}

static void put_moment_values(struct json *json, const struct shstk_moment *const *list, size_t nr,
			      unsigned int type)
{
	size_t same = 1;

	while (same < nr && list[same]->values[type] == list[0]->values[type])
		same++;
	if (same == nr) {
		shstk_json_int(json, NULL, list[0]->values[type]);
		return;
	}
	shstk_json_open(json, NULL, '[');
	for (size_t i = 0; i < nr; i++)
		shstk_json_int(json, NULL, list[i]->values[type]);
	shstk_json_close(json);
}

/* Writes when the processes began and ended, in us since @first; nothing if memory runs out. */
static void put_lives(struct json *json, const struct shstk_profile *profile, uint64_t first)
{
	size_t nr;
	struct shstk_life *lives = shstk_lives_shown(profile, first, &nr);

	if (!lives)
		return;
	shstk_json_open(json, "lives", '[');
	for (size_t i = 0; i < nr; i++) {
		shstk_json_open(json, NULL, '[');
		shstk_json_int(json, NULL, lives[i].pid);
		shstk_json_int(json, NULL, lives[i].time / 1000);
		shstk_json_int(json, NULL, lives[i].ended);
		shstk_json_close(json);
	}
	shstk_json_close(json);
	free(lives);
}

/* Writes the moments; nothing if there are no times, or no memory to sort them. */
static void put_moments(struct json *json, const struct shstk_profile *profile)
{
	const struct shstk_moments *moments = &profile->moments;
	const struct shstk_moment **list = calloc(moments->nr + 1, sizeof(*list));

	if (!moments->nr || !list) {
		free(list);
		return;
	}
	for (size_t i = 0; i < moments->nr; i++)
		list[i] = shstk_moments_at(moments, i);
	qsort(list, moments->nr, sizeof(*list), by_time);
	shstk_json_open(json, "moments", '{');
	shstk_json_int(json, "slot", moments->slot);
	put_times(json, list, moments->nr);
	shstk_json_open(json, "values", '[');
	for (unsigned int t = 0; t < profile->nr_types; t++)
		put_moment_values(json, list, moments->nr, t);
	shstk_json_close(json);
	put_lives(json, profile, list[0]->time);
	shstk_json_close(json);
	free(list);
}

static void put_page(struct json *json, const struct page *page,
		     const struct shstk_profile *profile, const struct shstk_write_opts *opts)
{
	shstk_json_open(json, NULL, '{');
	put_head(json, profile, opts);
	shstk_json_strings(json, "kinds", shstk_kind_names, SHSTK_KINDS);
	shstk_json_strings(json, "strings", page->strings.v, page->strings.rows.nr);
	put_table(json, page, "frames", FRAME_NAME,
		  (const char *const[]){ "name", "label", "brief", "module", "file", "line",
					 NULL });
	put_table(json, page, "stacks", STACK_PARENT,
		  (const char *const[]){ "parent", "frame", "kind", NULL });
	put_table(json, page, "processes", PROCESS_PID,
		  (const char *const[]){ "pid", "name", NULL });
	put_table(json, page, "threads", THREAD_PROCESS,
		  (const char *const[]){ "process", "tid", "name", NULL });
	put_table(json, page, "labels", LABEL_SET,
		  (const char *const[]){ "set", "key", "value", NULL });
	put_table(json, page, "samples", SAMPLE_STACK,
		  (const char *const[]){ "stack", "thread", "labels", NULL });
	shstk_json_open(json, "values", '[');
	for (unsigned int i = 0; i < page->nr_values; i++)
		put_column(json, NULL, &page->values[i]);
	shstk_json_close(json);
	if (!opts->base)
		put_moments(json, profile);
	shstk_json_close(json);
}

/* Returns the data as text, which the caller frees; NULL when memory runs out. */
static char *make_json(const struct page *page, const struct shstk_profile *profile,
		       const struct shstk_write_opts *opts, size_t *size)
{
	char *text = NULL;
	struct json json = { .out = open_memstream(&text, size) };
	bool failed;

	if (!json.out)
		return NULL;
	put_page(&json, page, profile, opts);
	failed = ferror(json.out);
	if (!fclose(json.out) && !failed)
		return text;
	free(text);
	return NULL;
}

/* ---- The file ---- */

static void put_base64(FILE *out, const uint8_t *data, size_t size)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < size; i += 3) {
		size_t left = size - i;
		uint32_t bits = data[i] << 16 | (left > 1 ? data[i + 1] << 8 : 0) |
				(left > 2 ? data[i + 2] : 0);

		putc_unlocked(digits[bits >> 18], out);
		putc_unlocked(digits[bits >> 12 & 63], out);
		putc_unlocked(left > 1 ? digits[bits >> 6 & 63] : '=', out);
		putc_unlocked(left > 2 ? digits[bits & 63] : '=', out);
		if (i % LINE == LINE - 3)
			putc_unlocked('\n', out);
	}
}

/* Packs a text with @z, which is set up, and writes it in base64. Returns 0 or a negative errno. */
static int put_packed(FILE *out, z_stream *z, const char *text, size_t size)
{
	/* The buffer holds whole lines of base64, so that its pieces make one text. */
	uint8_t packed[LINE * 256];
	int ret = Z_OK;

	do {
		z->next_out = packed;
		z->avail_out = sizeof(packed);
		do {
			if (!z->avail_in) {
				uInt n = size < (1u << 30) ? size : 1u << 30;

				z->next_in = (uint8_t *)text;
				z->avail_in = n;
				text += n;
				size -= n;
			}
			ret = deflate(z, size ? Z_NO_FLUSH : Z_FINISH);
		} while (ret == Z_OK && z->avail_out);
		put_base64(out, packed, sizeof(packed) - z->avail_out);
	} while (ret == Z_OK);
	return ret == Z_STREAM_END ? 0 : -EIO;
}

static int put_data(FILE *out, const char *text, size_t size)
{
	z_stream z = { 0 };
	int err;

	/* 15 + 16 means the largest window, in a gzip wrapper. */
	if (deflateInit2(&z, LEVEL, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	err = put_packed(out, &z, text, size);
	deflateEnd(&z);
	return err;
}

/* Writes what a line @NAME@ of page.html stands for. */
static int put_part(FILE *out, const char *line, const char *data, size_t size)
{
	static const char *const scripts[] = {
		shstk_page_model,  shstk_page_flame, shstk_page_list,  shstk_page_timeline,
		shstk_page_view,   shstk_page_head,  shstk_page_graph, shstk_page_times,
		shstk_page_tables, shstk_page_begin,
	};

	if (begins_with(line, "@DATA@"))
		return put_data(out, data, size);
	if (begins_with(line, "@STYLE@"))
		fputs(shstk_page_style, out);
	for (size_t i = 0; begins_with(line, "@SCRIPT@") && i < sizeof(scripts) / sizeof(*scripts);
	     i++)
		fputs(scripts[i], out);
	return 0;
}

static int put_html(FILE *out, const char *data, size_t size)
{
	const char *line = shstk_page_html, *end;
	int err = 0;

	for (; *line && !err; line = end) {
		end = strchrnul(line, '\n');
		end += *end == '\n';
		if (*line == '@')
			err = put_part(out, line, data, size);
		else
			fwrite(line, 1, end - line, out);
	}
	return err;
}

static void page_deinit(struct page *page)
{
	struct shstk_rows *tables[] = { &page->frames,	&page->stacks, &page->processes,
					&page->threads, &page->labels, &page->names };

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		shstk_rows_deinit(tables[i]);
	for (size_t i = 0; i < COLUMNS; i++)
		free(page->columns[i].v);
	for (size_t i = 0; i < SHSTK_PROFILE_MAX_TYPES; i++)
		free(page->values[i].v);
	shstk_texts_deinit(&page->strings);
	free(page->path);
	shstk_pool_deinit(&page->pool);
}

static int write_page(const struct shstk_profile *profile, FILE *out,
		      const struct shstk_write_opts *opts)
{
	struct page page = { .text = profile->text };
	char *data = NULL;
	size_t size;
	int err;

	shstk_pool_init(&page.pool);
	if (opts->base)
		add_profile(&page, opts->base);
	add_profile(&page, profile);
	if (opts->base)
		add_sides(&page, opts->base, profile, shstk_shown_type(profile, opts));
	else
		add_values(&page, profile);
	if (!page.failed)
		data = make_json(&page, profile, opts, &size);
	err = data ? put_html(out, data, size) : -ENOMEM;
	free(data);
	page_deinit(&page);
	return err;
}

const struct shstk_format shstk_format_html = {
	.name = "html",
	.suffixes = ".html .htm",
	.write = write_page,
};
