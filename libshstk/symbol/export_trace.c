// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * export_trace.c - the Trace Event Format of Chrome, which Perfetto and Speedscope read as well.
 *
 * Each thread is a track. A function is on it as a slice, from the first to the last of samples that
 * follow each other and have it at the same place: callers above, callees below. Where a thread is
 * off the CPU, the innermost slice says why, and which thread ended that, as far as the profile
 * knows. Where no times are kept, stacks stand one behind the other, each as long as its value: a
 * value that is no time has 1 us for 1.
 *
 * Viewers mix up tracks with the same ID. Threads whose IDs are not known, and a thread under each of
 * its names, therefore have IDs that no other track has.
 *
 * Values that are changes of a level, such as of the memory in use, are a counter of each process.
 *
 *   "B" and "E"  begin and end of a slice      "C"  value of a counter
 *   "X"          a slice with its duration     "M"  names of processes and threads
 *   "i"          a process began or ended
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format_rows.h"
#include "items.h"
#include "json.h"
#include "lives.h"
#include "waits.h"

#define GAP 2 /* periods without a sample after which functions are taken to have ended */
#define LEAST 1 /* ns: the least that the format has, with three decimals of a microsecond */
#define FREE_TID (1 << 22) /* Linux gives threads lower IDs than that */

/**
 * struct trace - a file being written
 * @profile: the profile.
 * @type: the values that are shown.
 * @json: the output.
 * @failed: memory ran out.
 * @timed: items have times.
 * @gap: ns without a sample after which functions are taken to have ended.
 * @scale: ns for a value of 1, where no times are kept.
 * @before: ns that what the samples show began before the first sample.
 * @names: functions of a sample, outermost first.
 * @nr: number of @names.
 * @max: number of elements that @names and @open have room for.
 * @open: functions whose slices are open, outermost first.
 * @nr_open: number of elements of @open.
 * @end: time up to which the open slices last.
 * @pool: memory of @tracks.
 * @tracks: the tracks so far: ID of the process, ID of the track.
 * @free_tid: ID for a thread whose own is the ID of another track.
 * @tid: ID of the track that is being written.
 */
struct trace {
	const struct shstk_profile *profile;
	const struct shstk_value_type *type;
	struct json json;
	bool failed;
	bool timed;
	uint64_t gap;
	uint64_t scale;
	uint64_t before;
	const char **names;
	size_t nr;
	size_t max;
	const char **open;
	size_t nr_open;
	uint64_t end;
	struct shstk_pool pool;
	struct shstk_rows tracks;
	int free_tid;
	int tid;
};

static int known(int id)
{
	return id < 0 ? 0 : id;
}

/* Begins an event of a process, on the track that is being written. */
static void open_event(struct trace *t, const char *phase, const char *name, int pid)
{
	shstk_json_open(&t->json, NULL, '{');
	shstk_json_string(&t->json, "ph", phase);
	shstk_json_string(&t->json, "name", name);
	shstk_json_int(&t->json, "pid", known(pid));
	shstk_json_int(&t->json, "tid", t->tid);
}

/* Writes a time in us, as the format counts. */
static void put_time(struct trace *t, const char *name, uint64_t ns)
{
	shstk_json_real(&t->json, name, ns / 1000.0);
}

/* Writes the begin ("B") or the end ("E") of a slice. */
static void put_edge(struct trace *t, const char *phase, const char *name,
		     const struct shstk_record *record, uint64_t time)
{
	open_event(t, phase, name, shstk_symproc_pid(record->proc));
	put_time(t, "ts", time);
	shstk_json_close(&t->json);
}

/* ---- Slices ---- */

static bool make_room(struct trace *t, size_t nr)
{
	const char **names, **open;
	size_t max = 2 * nr;

	if (nr <= t->max)
		return true;
	names = reallocarray(t->names, max, sizeof(*names));
	if (names)
		t->names = names;
	open = reallocarray(t->open, max, sizeof(*open));
	if (open)
		t->open = open;
	if (!names || !open)
		return false;
	t->max = max;
	return true;
}

static void add_name(struct trace *t, const char *name)
{
	if (!make_room(t, t->nr + 1))
		t->failed = true;
	else
		t->names[t->nr++] = name;
}

/* Lists the functions of a record. */
static void list_names(struct trace *t, const struct shstk_record *record)
{
	const struct shstk_profile *profile = t->profile;

	t->nr = 0;
	if (record->note)
		add_name(t, shstk_note_name(record->note));
	for (uint64_t i = record->nr; i-- && !t->failed;) {
		const struct shstk_symbol *symbol =
			shstk_location_symbol(profile, profile->locations[record->locations[i]]);

		for (unsigned int k = symbol->nr; k--;)
			add_name(t, symbol->frames[k].function);
	}
}

/* Closes all but the outermost @keep slices. */
static void close_slices(struct trace *t, const struct shstk_record *record, size_t keep)
{
	for (; t->nr_open > keep; t->nr_open--)
		put_edge(t, "E", t->open[t->nr_open - 1], record, t->end);
}

/* Opens slices for the functions that are not open yet. */
static void open_slices(struct trace *t, const struct shstk_record *record, uint64_t time)
{
	for (; t->nr_open < t->nr; t->nr_open++) {
		t->open[t->nr_open] = t->names[t->nr_open];
		put_edge(t, "B", t->open[t->nr_open], record, time);
	}
}

/* Writes the slice that says why a thread is off the CPU from @begin to @end. */
static void put_wait(struct trace *t, const struct shstk_item *item, const char *state,
		     uint64_t begin, uint64_t end)
{
	const char *waker = shstk_record_label(item->record, "waker");

	open_event(t, "X", state, shstk_symproc_pid(item->record->proc));
	shstk_json_string(&t->json, "cat", "off-cpu");
	put_time(t, "ts", begin);
	put_time(t, "dur", end - begin);
	shstk_json_open(&t->json, "args", '{');
	shstk_json_string(&t->json, "in", shstk_record_place(t->profile, item->record));
	if (waker)
		shstk_json_string(&t->json, "waker", waker);
	shstk_json_close(&t->json);
	shstk_json_close(&t->json);
}

static bool same_name(const char *a, const char *b)
{
	return a == b || !strcmp(a, b);
}

/* Returns how long a value lasts, in ns. */
static uint64_t scaled(const struct trace *t, uint64_t value)
{
	uint64_t ns;

	return __builtin_mul_overflow(value, t->scale, &ns) ? INT64_MAX : ns;
}

/* Returns how long before its time a sample began: one on the CPU is of the time before it. */
static uint64_t length_before(const struct trace *t, const struct shstk_item *item)
{
	if (!t->timed || strcmp(t->type->unit, "nanoseconds") ||
	    shstk_record_state(t->type, item->record))
		return 0;
	return item->value;
}

/* Finds how long before the first sample the earliest time began that samples show. */
static void find_begin(struct trace *t, const struct shstk_items *items)
{
	for (size_t i = 0; i < items->nr; i++) {
		const uint64_t length = length_before(t, &items->v[i]), time = items->v[i].time;

		if (length > time && length - time > t->before)
			t->before = length - time;
	}
}

/* Returns when what a sample shows began and, in @end, when it ended. */
static uint64_t span_of(const struct trace *t, const struct shstk_item *item, const char *state,
			uint64_t *end)
{
	const uint64_t time = t->before + item->time;

	if (!t->timed) {
		*end = scaled(t, item->time + item->value);
		return scaled(t, item->time);
	}
	*end = state ? time + item->value : time;
	return time - length_before(t, item);
}

/* Returns how many of the outermost slices go on in a sample that begins at @begin. */
static size_t count_same(const struct trace *t, uint64_t begin)
{
	size_t same = 0;

	if (begin > t->end && begin - t->end > t->gap)
		return 0;
	while (same < t->nr && same < t->nr_open && same_name(t->names[same], t->open[same]))
		same++;
	return same;
}

/* Returns whether the first slice that begins behind the outermost @same is called as one that ends. */
static bool name_ends(const struct trace *t, size_t same)
{
	for (size_t i = same; same < t->nr && i < t->nr_open; i++)
		if (same_name(t->open[i], t->names[same]))
			return true;
	return false;
}

/*
 * Viewers do not keep events of the same time in their order: speedscope lets a slice begin before
 * the other one of its name ends. Therefore such a slice, and a wait, begin LEAST later, and no
 * slice is shorter than that.
 */
static void put_item(struct trace *t, const struct shstk_item *item)
{
	const char *state = shstk_record_state(t->type, item->record);
	uint64_t end, begin = span_of(t, item, state, &end);
	size_t same;

	list_names(t, item->record);
	if (begin < t->end)
		begin = t->end;
	same = count_same(t, begin);
	if (begin == t->end && t->nr_open && (state || name_ends(t, same)))
		begin += LEAST;
	if (end < begin + LEAST)
		end = begin + LEAST;
	close_slices(t, item->record, same);
	open_slices(t, item->record, begin);
	t->end = end;
	if (state)
		put_wait(t, item, state, begin, end);
}

/* ---- Threads ---- */

static void put_name(struct trace *t, const char *what, const struct shstk_record *record,
		     const char *name)
{
	open_event(t, "M", what, shstk_symproc_pid(record->proc));
	shstk_json_open(&t->json, "args", '{');
	shstk_json_string(&t->json, "name", *name ? name : "all");
	shstk_json_close(&t->json);
	shstk_json_close(&t->json);
}

/* Adds a track of a process. Returns false if there is one with that ID, or memory runs out. */
static bool add_track(struct trace *t, const struct shstk_record *record, int tid)
{
	const uintptr_t key[SHSTK_ROW_KEY] = { known(shstk_symproc_pid(record->proc)), tid };
	bool made;

	shstk_rows_number(&t->tracks, &t->pool, key, &made, &t->failed);
	return made;
}

/* Returns the ID of the track of a thread: its own, unless another track has that. */
static int choose_tid(struct trace *t, const struct shstk_record *record)
{
	int tid = known(record->tid);

	while (!add_track(t, record, tid) && !t->failed)
		tid = t->free_tid++;
	return tid;
}

/* Returns whether there is anything to be seen of a thread: stacks, or why it was off the CPU. */
static bool is_shown(const struct trace *t, const struct shstk_items *items, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		const struct shstk_record *record = items->v[i].record;

		if (record->nr || record->note || shstk_record_state(t->type, record))
			return true;
	}
	return false;
}

/* Writes the samples of a thread; those of one process follow each other. */
static void put_thread(struct trace *t, const struct shstk_items *items, size_t from, size_t to)
{
	const struct shstk_record *record = items->v[from].record;
	const int pid = shstk_symproc_pid(record->proc);

	t->tid = known(record->tid);
	if (!from || shstk_symproc_pid(items->v[from - 1].record->proc) != pid ||
	    record->tid == pid)
		put_name(t, "process_name", record, record->comm);
	if (is_shown(t, items, from, to)) {
		t->tid = choose_tid(t, record);
		put_name(t, "thread_name", record, record->comm);
	}
	t->end = 0;
	for (size_t i = from; i < to && !t->failed; i++)
		put_item(t, &items->v[i]);
	close_slices(t, record, 0);
}

/* Writes when the processes that have samples began and ended, since @first. */
static int put_lives(struct trace *t, uint64_t first)
{
	size_t nr;
	struct shstk_life *lives = shstk_lives_shown(t->profile, first, &nr);

	for (size_t i = 0; lives && i < nr; i++) {
		t->tid = lives[i].pid;
		open_event(t, "i", shstk_life_name(&lives[i]), lives[i].pid);
		shstk_json_string(&t->json, "s", "p");
		put_time(t, "ts", t->before + lives[i].time);
		shstk_json_open(&t->json, "args", '{');
		shstk_json_string(&t->json, "process", lives[i].comm);
		shstk_json_close(&t->json);
		shstk_json_close(&t->json);
	}
	free(lives);
	return lives ? 0 : -ENOMEM;
}

static int put_threads(struct trace *t, unsigned int type)
{
	struct shstk_items items;
	size_t to;
	int err = shstk_items_make(t->profile, type, &items);

	if (err)
		return err;
	find_begin(t, &items);
	for (size_t from = 0; from < items.nr && !t->failed; from = to) {
		to = shstk_items_end(&items, from);
		put_thread(t, &items, from, to);
	}
	err = put_lives(t, items.first);
	shstk_items_deinit(&items);
	return t->failed ? -ENOMEM : err;
}

/* ---- Counters ---- */

static void put_counter(struct trace *t, const struct shstk_moment *moment, uint64_t first,
			int64_t value)
{
	open_event(t, "C", t->type->type, shstk_symproc_pid(moment->record->proc));
	put_time(t, "ts", moment->time - first);
	shstk_json_open(&t->json, "args", '{');
	shstk_json_int(&t->json, t->type->unit, value);
	shstk_json_close(&t->json);
	shstk_json_close(&t->json);
}

static bool same_process(const struct shstk_moment *a, const struct shstk_moment *b)
{
	return shstk_symproc_pid(a->record->proc) == shstk_symproc_pid(b->record->proc);
}

/* Writes what each process had at each moment at which it changed. */
static int put_counters(struct trace *t, unsigned int type)
{
	const struct shstk_moments *moments = &t->profile->moments;
	uint64_t first;
	const struct shstk_moment **list = shstk_moments_by_process(t->profile, &first);
	int64_t sum = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < moments->nr; i++) {
		const bool last = i + 1 == moments->nr;

		if (!i || !same_process(list[i - 1], list[i])) {
			put_name(t, "process_name", list[i]->record, list[i]->record->comm);
			sum = 0;
		}
		sum = shstk_add(sum, list[i]->values[type]);
		if (last || list[i + 1]->time != list[i]->time ||
		    !same_process(list[i], list[i + 1]))
			put_counter(t, list[i], first, sum);
	}
	free(list);
	return put_lives(t, first);
}

/* ---- The file ---- */

static int put_file(struct trace *t, unsigned int type, const char *title)
{
	const struct shstk_profile *profile = t->profile;
	int err = 0;

	shstk_json_open(&t->json, NULL, '{');
	shstk_json_string(&t->json, "displayTimeUnit", "ns");
	shstk_json_open(&t->json, "otherData", '{');
	shstk_json_string(&t->json, "title", title ? title : "shstk");
	shstk_json_strings(&t->json, "cautions", profile->cautions, profile->nr_cautions);
	shstk_json_strings(&t->json, "comments", profile->comments, profile->nr_comments);
	shstk_json_close(&t->json);
	shstk_json_open(&t->json, "traceEvents", '[');
	if (profile->nr_types && profile->moments.nr && shstk_type_is_level(profile, type))
		err = put_counters(t, type);
	else if (profile->nr_types)
		err = put_threads(t, type);
	shstk_json_close(&t->json);
	shstk_json_close(&t->json);
	return err;
}

static int write_trace(const struct shstk_profile *profile, FILE *out,
		       const struct shstk_write_opts *opts)
{
	const unsigned int type = shstk_shown_type(profile, opts);
	const char *unit = profile->period_type.unit;
	struct trace t = {
		.profile = profile,
		.type = &profile->types[type],
		.json = { .out = out },
		.timed = profile->moments.nr,
		.scale = 1,
		.free_tid = FREE_TID,
	};
	int err;

	if (unit && !strcmp(unit, "nanoseconds") && profile->period > 0)
		t.gap = GAP * (uint64_t)profile->period;
	if (!t.timed && profile->nr_types && strcmp(t.type->unit, "nanoseconds"))
		t.scale = 1000;
	shstk_pool_init(&t.pool);
	err = put_file(&t, type, opts->title);
	shstk_rows_deinit(&t.tracks);
	shstk_pool_deinit(&t.pool);
	free(t.names);
	free(t.open);
	return err;
}

const struct shstk_format shstk_format_trace = {
	.name = "trace",
	.suffixes = ".trace.json",
	.write = write_trace,
};
