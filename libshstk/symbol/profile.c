// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * profile.c - a profile in memory.
 *
 * Adding a sample turns its addresses into numbered locations (mapping, address) and adds its
 * values to the record with the same process, thread and locations. No address is named until the
 * profile is written.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../shstk.h"
#include "export.h"
#include "keep.h"
#include "store.h"

#define TOGETHER 16 /* entries of a stack that are looked up at a time */

static uint64_t next_serial(void)
{
	static _Atomic uint64_t last;

	return ++last;
}

int shstk_profile_create(struct shstk_symbols *symbols, struct shstk_profile **ret)
{
	struct shstk_profile *profile = calloc(1, sizeof(*profile));

	if (!profile)
		return -ENOMEM;
	profile->serial = next_serial();
	profile->symbols = symbols;
	profile->text = shstk_symbols_pool(symbols);
	shstk_pool_init(&profile->pool);
	*ret = profile;
	return 0;
}

static void clear_table(struct shstk_location_table *table)
{
	free(table->slots);
	*table = (struct shstk_location_table){ 0 };
}

void shstk_profile_destroy(struct shstk_profile *profile)
{
	if (!profile)
		return;
	HASH_CLEAR(hh, profile->table);
	clear_table(&profile->location_table);
	HASH_CLEAR(hh, profile->label_table);
	shstk_named_deinit(profile);
	shstk_pool_deinit(&profile->pool);
	free(profile->records);
	free(profile->locations);
	shstk_moments_deinit(&profile->moments);
	free(profile->lives);
	free(profile->comments);
	free(profile->cautions);
	free(profile->scratch);
	for (size_t i = 0; i < SHSTK_LAST_THREADS; i++)
		free(profile->last[i].entries);
	free(profile);
}

void shstk_profile_reset(struct shstk_profile *profile)
{
	HASH_CLEAR(hh, profile->table);
	clear_table(&profile->location_table);
	HASH_CLEAR(hh, profile->label_table);
	shstk_named_deinit(profile);
	shstk_pool_deinit(&profile->pool);
	shstk_pool_init(&profile->pool);
	profile->serial = next_serial();
	profile->nr_records = 0;
	profile->nr_locations = 0;
	profile->prepared = 0;
	shstk_moments_reset(&profile->moments);
	profile->nr_lives = 0;
	for (size_t i = 0; i < SHSTK_LAST_THREADS; i++)
		profile->last[i].nr = 0;
	memset(profile->totals, 0, sizeof(profile->totals));
	memset(profile->guessed, 0, sizeof(profile->guessed));
}

static int set_type(struct shstk_profile *profile, struct shstk_value_type *to, const char *type,
		    const char *unit)
{
	to->type = shstk_pool_text(profile->text, type, strlen(type));
	to->unit = shstk_pool_text(profile->text, unit, strlen(unit));
	return to->type && to->unit ? 0 : -ENOMEM;
}

int shstk_profile_add_type(struct shstk_profile *profile, const char *type, const char *unit)
{
	if (profile->nr_records)
		return -EINVAL;
	if (profile->nr_types == SHSTK_PROFILE_MAX_TYPES)
		return -E2BIG;
	if (set_type(profile, &profile->types[profile->nr_types], type, unit))
		return -ENOMEM;
	return profile->nr_types++;
}

int shstk_profile_set_note(struct shstk_profile *profile, unsigned int type, const char *note)
{
	if (type >= profile->nr_types)
		return -EINVAL;
	profile->types[type].note = shstk_pool_text(profile->text, note, strlen(note));
	return profile->types[type].note ? 0 : -ENOMEM;
}

bool shstk_profile_empty(const struct shstk_profile *profile)
{
	return !profile->nr_records;
}

int shstk_profile_set_period(struct shstk_profile *profile, const char *type, const char *unit,
			     int64_t period)
{
	profile->period = period;
	return set_type(profile, &profile->period_type, type, unit);
}

void shstk_profile_set_time(struct shstk_profile *profile, int64_t start, int64_t duration)
{
	profile->start = start;
	profile->duration = duration;
}

void shstk_profile_set_main(struct shstk_profile *profile, int pid)
{
	profile->main_pid = pid;
}

/* A program lies below its libraries. */
const struct shstk_symmap *shstk_profile_main_map(const struct shstk_profile *profile)
{
	const struct shstk_symmap *found = profile->main_map;

	for (size_t i = 0; !profile->main_map && profile->main_pid && i < profile->nr_locations;
	     i++) {
		const struct shstk_symmap *map = profile->locations[i]->map;

		if (map->kind == SHSTK_SYMMAP_FILE && map->proc &&
		    shstk_symproc_pid(map->proc) == profile->main_pid &&
		    (!found || map->start < found->start))
			found = map;
	}
	return found;
}

void shstk_profile_keep(struct shstk_profile *profile, struct shstk_keep *keep)
{
	profile->keep = keep;
}

const char *shstk_profile_title(const struct shstk_profile *profile)
{
	return profile->title;
}

void shstk_profile_set_origin(struct shstk_profile *profile, uint64_t origin)
{
	profile->origin = origin;
}

uint64_t shstk_profile_origin(const struct shstk_profile *profile)
{
	return profile->origin;
}

static int add_line(struct shstk_profile *profile, const char ***lines, size_t *nr,
		    const char *text)
{
	const char **more = reallocarray(*lines, *nr + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	*lines = more;
	text = shstk_pool_text(profile->text, text, strlen(text));
	if (!text)
		return -ENOMEM;
	more[(*nr)++] = text;
	return 0;
}

int shstk_profile_comment(struct shstk_profile *profile, const char *text)
{
	return add_line(profile, &profile->comments, &profile->nr_comments, text);
}

int shstk_profile_caution(struct shstk_profile *profile, const char *text)
{
	for (size_t i = 0; i < profile->nr_cautions; i++)
		if (!strcmp(profile->cautions[i], text))
			return 0;
	return add_line(profile, &profile->cautions, &profile->nr_cautions, text);
}

void shstk_profile_keep_times(struct shstk_profile *profile, size_t most)
{
	profile->moments.most = most;
}

#define LOCATION_KEY_SIZE \
	(offsetof(struct shstk_location, id) - offsetof(struct shstk_location, map))

struct shstk_location *shstk_location_add(struct shstk_profile *profile,
					  const struct shstk_location *key)
{
	struct shstk_location *new, **list;

	if (profile->nr_locations >= UINT32_MAX - 1)
		return NULL;
	list = shstk_grow(profile->locations, profile->nr_locations, &profile->max_locations,
			  sizeof(*list));
	if (!list)
		return NULL;
	profile->locations = list;
	new = shstk_pool_alloc(&profile->pool, sizeof(*new));
	if (!new)
		return NULL;
	new->map = key->map;
	new->pc = key->pc;
	new->how = key->how;
	new->guessed = key->guessed;
	new->generated = key->generated;
	new->symbol = key->symbol;
	profile->locations[profile->nr_locations++] = new;
	new->id = profile->nr_locations;
	return new;
}

static uint32_t hash_location(const struct shstk_location *location)
{
	return shstk_hash(&location->map, LOCATION_KEY_SIZE);
}

static void fill_slot(struct shstk_location_table *table, const struct shstk_location_slot *slot)
{
	size_t at = slot->hash;

	while (table->slots[at & (table->max - 1)].location)
		at++;
	table->slots[at & (table->max - 1)] = *slot;
	table->nr++;
}

/* Makes room for one more location. Returns false when memory runs out. */
static bool grow_table(struct shstk_location_table *table)
{
	struct shstk_location_table more = { .max = table->max ? 2 * table->max : 256 };

	if (table->nr < table->max / 2)
		return true;
	more.slots = calloc(more.max, sizeof(*more.slots));
	if (!more.slots)
		return false;
	for (size_t i = 0; i < table->max; i++)
		if (table->slots[i].location)
			fill_slot(&more, &table->slots[i]);
	free(table->slots);
	*table = more;
	return true;
}

/* Returns the location with the same key as @key, whose hash is @hash, or NULL. */
static struct shstk_location *find_location(const struct shstk_profile *profile,
					    const struct shstk_location *key, uint32_t hash)
{
	const struct shstk_location_table *table = &profile->location_table;
	const struct shstk_location_slot *slot;

	/* There is always a free slot. */
	for (size_t at = hash; table->max; at++) {
		slot = &table->slots[at & (table->max - 1)];
		if (!slot->location)
			break;
		if (slot->hash == hash &&
		    !memcmp(&slot->location->map, &key->map, LOCATION_KEY_SIZE))
			return slot->location;
	}
	return NULL;
}

static struct shstk_location *add_location(struct shstk_profile *profile,
					   const struct shstk_location *key, uint32_t hash)
{
	struct shstk_location_slot slot = { .hash = hash };

	if (!grow_table(&profile->location_table))
		return NULL;
	slot.location = shstk_location_add(profile, key);
	if (slot.location)
		fill_slot(&profile->location_table, &slot);
	return slot.location;
}

/* Returns how entry @i of a sample is looked up: enum shstk_symaddr. */
static int how_of(const struct shstk_sample *sample, unsigned int i)
{
	uint8_t marks = sample->marks ? sample->marks[i] : 0;

	return marks & (SHSTK_MARK_PC | SHSTK_MARK_SIGNAL) ? SHSTK_SYMADDR_PC :
							     SHSTK_SYMADDR_RETURN;
}

/* Returns whether entry @i of a sample was found by guessing. */
static bool guessed_at(const struct shstk_sample *sample, unsigned int i)
{
	return sample->marks && sample->marks[i] & SHSTK_MARK_GUESS;
}

/*
 * Returns the function at an address of code made at run time, or NULL. It must be found now: when
 * the profile is written, the code may be gone and other code be there.
 */
static const struct shstk_perfmap_entry *find_generated(const struct shstk_symmap *map, uint64_t pc,
							int how)
{
	if (map->kind != SHSTK_SYMMAP_ANON && map->kind != SHSTK_SYMMAP_NONE)
		return NULL;
	return shstk_symproc_generated_now(map->proc, how == SHSTK_SYMADDR_PC || !pc ? pc : pc - 1);
}

/* An entry of a stack whose location is looked up: the location's key, and the hash of that. */
struct look_up {
	struct shstk_location key;
	uint32_t hash;
};

/* Returns what is looked up for entry @i of a sample. */
static struct look_up look_up_of(const struct shstk_sample *sample, unsigned int i)
{
	const uint64_t pc = sample->pcs[i];
	const int how = how_of(sample, i);
	const struct shstk_symbol *function = shstk_symbols_function(sample->proc->symbols, pc);
	struct look_up ret = {
		.key = {
			.map = function ? function->map : shstk_symproc_find(sample->proc, pc),
			.pc = function ? 0 : pc,
			.how = how,
			.guessed = guessed_at(sample, i),
			.symbol = function,
		},
	};

	if (sample->time && !function)
		ret.key.generated = find_generated(ret.key.map, pc, how);
	ret.hash = hash_location(&ret.key);
	return ret;
}

/*
 * Begins to fetch what @nr look-ups need, first of the table and then of the locations. Neither is in a
 * cache mostly: fetched one after the other, that would be most of the time of adding a sample.
 */
static void fetch(const struct shstk_location_table *table, const struct look_up *list,
		  unsigned int nr)
{
	for (unsigned int i = 0; table->max && i < nr; i++)
		__builtin_prefetch(&table->slots[list[i].hash & (table->max - 1)]);
	for (unsigned int i = 0; table->max && i < nr; i++)
		__builtin_prefetch(table->slots[list[i].hash & (table->max - 1)].location);
}

/* Returns the location, which is added if it is new, or NULL when memory runs out. */
static struct shstk_location *get_location(struct shstk_profile *profile, const struct look_up *l)
{
	struct shstk_location *found = find_location(profile, &l->key, l->hash);

	return found ? found : add_location(profile, &l->key, l->hash);
}

/*
 * Fills the locations of the @nr innermost entries of a sample, and notes them in @last. Returns false
 * when memory runs out.
 */
static bool search_locations(struct shstk_profile *profile, const struct shstk_sample *sample,
			     unsigned int nr, struct shstk_last *last, uint32_t *locations)
{
	struct look_up list[TOGETHER];
	unsigned int n;

	for (unsigned int i = 0; i < nr; i += n) {
		n = nr - i < TOGETHER ? nr - i : TOGETHER;
		for (unsigned int j = 0; j < n; j++)
			list[j] = look_up_of(sample, i + j);
		fetch(&profile->location_table, list, n);
		for (unsigned int j = 0; j < n; j++) {
			const struct shstk_location *location = get_location(profile, &list[j]);

			if (!location)
				return false;
			locations[i + j] = location->id - 1;
			last->entries[sample->nr - 1 - i - j] = (struct shstk_last_entry){
				sample->pcs[i + j],
				list[j].key.how,
				list[j].key.guessed,
				location->id - 1,
			};
		}
	}
	return true;
}

/*
 * Returns the place of the thread's last sample. Another thread may have the same place: what is there
 * is right for any sample with the same addresses in the same process.
 */
static struct shstk_last *last_of(struct shstk_profile *profile, const struct shstk_sample *sample)
{
	const uint64_t key[] = { (uintptr_t)sample->proc, (uint32_t)sample->tid };

	return &profile->last[shstk_hash(key, sizeof(key)) % SHSTK_LAST_THREADS];
}

/* Returns how many of the outermost entries are the same as in the sample before. */
static unsigned int count_same(const struct shstk_last *last, const struct shstk_sample *sample)
{
	unsigned int n = 0, i = sample->nr;

	if (last->proc != sample->proc || last->changes != sample->proc->changes)
		return 0;
	while (i-- && n < last->nr && last->entries[n].pc == sample->pcs[i] &&
	       last->entries[n].how == how_of(sample, i) &&
	       last->entries[n].guessed == guessed_at(sample, i))
		n++;
	return n;
}

static bool make_room(struct shstk_last *last, unsigned int nr)
{
	struct shstk_last_entry *more;

	if (nr <= last->max)
		return true;
	more = reallocarray(last->entries, nr, sizeof(*more));
	if (!more)
		return false;
	last->entries = more;
	last->max = nr;
	return true;
}

/*
 * Fills the locations of a sample; returns false when memory runs out. Most of its outer entries
 * are the same as in the thread's sample before, and are not searched again: each search in the
 * table of all locations fetches memory that no cache has. Where many CPUs are recorded, the sample
 * before is mostly one of another thread.
 */
static bool find_locations(struct shstk_profile *profile, const struct shstk_sample *sample,
			   uint32_t *locations)
{
	struct shstk_last *last = last_of(profile, sample);
	unsigned int same, n;

	if (sample->locations) {
		memcpy(locations, sample->locations, sample->nr * sizeof(*locations));
		return true;
	}
	if (sample->time)
		shstk_generated_follow(sample->proc, sample->time);
	same = count_same(last, sample);
	n = sample->nr - same;
	if (!make_room(last, sample->nr))
		return false;
	last->nr = same;
	last->proc = sample->proc;
	last->changes = sample->proc->changes;
	if (!search_locations(profile, sample, n, last, locations))
		return false;
	for (unsigned int i = n; i < sample->nr; i++)
		locations[i] = last->entries[sample->nr - 1 - i].location;
	last->nr = sample->nr;
	return true;
}

const char *shstk_note_name(int note)
{
	static const char *const names[SHSTK_NOTES] = {
		[SHSTK_NOTE_TRUNCATED] = "[truncated]",
		[SHSTK_NOTE_TICKS] = "[between ticks]",
		[SHSTK_NOTE_LOADER] = "[exec, loader]",
		[SHSTK_NOTE_EXIT] = "[exit]",
		[SHSTK_NOTE_HELD] = "[small stack]",
		[SHSTK_NOTE_UNSAMPLED] = "[not sampled]",
		[SHSTK_NOTE_THREADS] = "[unsampled threads]",
		[SHSTK_NOTE_KERNEL] = "[kernel]",
	};

	return note > 0 && note < SHSTK_NOTES ? names[note] : "[unknown]";
}

/* ---- Labels ---- */

struct pair {
	const char *key, *value;
};

static int by_key(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;
	int ret = strcmp(x->key, y->key);

	return ret ? ret : strcmp(x->value, y->value);
}

/*
 * Returns the pool's copy of the next string of @text, which ends at @end, and moves @text behind
 * its zero. NULL if there is none, or memory runs out.
 */
static const char *take_text(struct shstk_profile *profile, const char **text, const char *end)
{
	const char *zero = *text < end ? memchr(*text, 0, end - *text) : NULL;
	const char *ret;

	if (!zero)
		return NULL;
	ret = shstk_pool_text(profile->text, *text, zero - *text);
	*text = zero + 1;
	return ret;
}

/*
 * Adds the labels at @text to @pairs, which have @nr elements. A key without a value is left out.
 * Returns their number.
 */
static size_t take_pairs(struct shstk_profile *profile, const char *text, size_t size,
			 struct pair *pairs, size_t nr)
{
	const char *end = text + size;

	while (nr < SHSTK_PROFILE_MAX_LABELS) {
		pairs[nr].key = take_text(profile, &text, end);
		pairs[nr].value = take_text(profile, &text, end);
		if (!pairs[nr].key || !pairs[nr].value)
			break;
		nr++;
	}
	return nr;
}

/* Sets @ret to the profile's one copy of these labels. Returns 0 or -ENOMEM. */
static int find_labels(struct shstk_profile *profile, struct pair *pairs, size_t nr,
		       const struct shstk_labels **ret)
{
	struct shstk_labels *labels;

	qsort(pairs, nr, sizeof(*pairs), by_key);
	HASH_FIND(hh, profile->label_table, pairs, nr * sizeof(*pairs), labels);
	if (!labels) {
		labels = shstk_pool_alloc(&profile->pool, sizeof(*labels) + nr * sizeof(*pairs));
		if (!labels)
			return -ENOMEM;
		labels->nr = 2 * nr;
		memcpy(labels->text, pairs, nr * sizeof(*pairs));
		HASH_ADD_KEYPTR(hh, profile->label_table, labels->text, nr * sizeof(*pairs),
				labels);
		if (!labels->hh.tbl)
			return -ENOMEM;
	}
	*ret = labels;
	return 0;
}

/*
 * Sets @ret to the labels of a sample and of its process. Those of a process alone are found once:
 * most samples have no others. Returns 0 or -ENOMEM.
 */
static int get_labels(struct shstk_profile *profile, const struct shstk_sample *sample,
		      const struct shstk_labels **ret)
{
	struct shstk_symproc *proc = sample->proc;
	const bool own = sample->labels && sample->labels_size;
	struct pair pairs[SHSTK_PROFILE_MAX_LABELS];
	size_t nr = 0;
	int err;

	*ret = NULL;
	if (!own && !proc->labels)
		return 0;
	if (!own && proc->labels_serial == profile->serial) {
		*ret = proc->profile_labels;
		return 0;
	}
	if (own)
		nr = take_pairs(profile, sample->labels, sample->labels_size, pairs, nr);
	if (proc->labels)
		nr = take_pairs(profile, proc->labels, proc->labels_size, pairs, nr);
	err = nr ? find_labels(profile, pairs, nr, ret) : 0;
	if (!err && !own) {
		proc->profile_labels = *ret;
		proc->labels_serial = profile->serial;
	}
	return err;
}

/* ---- Samples ---- */

/* Returns the part of a record that tells it from others. */
static void *key_of(struct shstk_record *record)
{
	return &record->proc;
}

static size_t key_size(const struct shstk_record *record)
{
	return offsetof(struct shstk_record, locations) - offsetof(struct shstk_record, proc) +
	       record->nr * sizeof(record->locations[0]);
}

static struct shstk_record *scratch(struct shstk_profile *profile, unsigned int nr)
{
	size_t size = sizeof(*profile->scratch) + nr * sizeof(uint32_t);
	struct shstk_record *more;

	if (size > profile->max_scratch) {
		more = realloc(profile->scratch, size);
		if (!more)
			return NULL;
		profile->scratch = more;
		profile->max_scratch = size;
	}
	memset(profile->scratch, 0, sizeof(*profile->scratch));
	return profile->scratch;
}

/*
 * Returns what @sample would be as a record, without values; NULL when memory runs out. It is valid
 * until the next call.
 */
static struct shstk_record *make_key(struct shstk_profile *profile,
				     const struct shstk_sample *sample)
{
	struct shstk_record *record = scratch(profile, sample->nr);
	const char *comm = sample->comm ? sample->comm : "";

	if (!record)
		return NULL;
	record->proc = sample->proc;
	record->tid = sample->tid;
	record->note = sample->note			 ? sample->note :
		       sample->end != SHSTK_END_COMPLETE ? SHSTK_NOTE_TRUNCATED :
							   SHSTK_NOTE_NONE;
	record->comm = shstk_pool_text(profile->text, comm, strlen(comm));
	if (get_labels(profile, sample, &record->labels))
		return NULL;
	record->nr = sample->nr;
	if (!find_locations(profile, sample, record->locations))
		return NULL;
	return record->comm ? record : NULL;
}

static struct shstk_record *add_record(struct shstk_profile *profile, struct shstk_record *key)
{
	size_t size = key_size(key);
	struct shstk_record *new, **list;

	list = shstk_grow(profile->records, profile->nr_records, &profile->max_records,
			  sizeof(*list));
	if (!list)
		return NULL;
	profile->records = list;
	new = shstk_pool_alloc(&profile->pool, offsetof(struct shstk_record, proc) + size);
	if (!new)
		return NULL;
	new->values = shstk_pool_alloc(&profile->pool, profile->nr_types * sizeof(int64_t));
	if (!new->values)
		return NULL;
	memcpy(key_of(new), key_of(key), size);
	HASH_ADD_KEYPTR(hh, profile->table, key_of(new), size, new);
	if (!new->hh.tbl)
		return NULL;
	new->number = profile->nr_records;
	profile->records[profile->nr_records++] = new;
	return new;
}

/* Hands a sample to the file that keeps all of them. Returns 0 or -ENOMEM. */
static int keep_sample(struct shstk_profile *profile, const struct shstk_record *record,
		       uint64_t time, unsigned int cpu, const int64_t *values)
{
	struct shstk_otlp_sample whole = {
		.record = record,
		.time = time,
		.cpu = (int32_t)cpu - 1,
	};

	memcpy(whole.values, values, profile->nr_types * sizeof(whole.values[0]));
	return shstk_keep_add(profile->keep, &whole);
}

/* Sets @ret to the record of a sample, which is added if it is new. Returns 0 or a negative errno. */
static int get_record(struct shstk_profile *profile, const struct shstk_sample *sample,
		      struct shstk_record **ret)
{
	struct shstk_record *key;

	if (!profile->nr_types)
		return -EINVAL;
	key = make_key(profile, sample);
	if (!key)
		return -ENOMEM;
	HASH_FIND(hh, profile->table, key_of(key), key_size(key), *ret);
	if (!*ret)
		*ret = add_record(profile, key);
	return *ret ? 0 : -ENOMEM;
}

/* Returns whether an entry of a stack was found by guessing. */
static bool is_guessed(const struct shstk_sample *sample)
{
	uint8_t all = 0;

	for (unsigned int i = 0; sample->marks && i < sample->nr; i++)
		all |= sample->marks[i];
	return all & SHSTK_MARK_GUESS;
}

static void add_guessed(struct shstk_profile *profile, const int64_t *values)
{
	for (unsigned int i = 0; i < profile->nr_types; i++)
		profile->guessed[i] = shstk_add(profile->guessed[i], values[i]);
}

/* Adds the values of a sample on CPU @cpu, from 1, to its record. Returns 0 or -ENOMEM. */
static int add_values(struct shstk_profile *profile, const struct shstk_record *record,
		      uint64_t time, unsigned int cpu, const int64_t *values)
{
	if (profile->moments.most &&
	    shstk_moments_add(&profile->moments, time, record, values, profile->nr_types))
		return -ENOMEM;
	for (unsigned int i = 0; i < profile->nr_types; i++) {
		record->values[i] = shstk_add(record->values[i], values[i]);
		profile->totals[i] = shstk_add(profile->totals[i], values[i]);
	}
	return profile->keep ? keep_sample(profile, record, time, cpu, values) : 0;
}

int shstk_profile_add(struct shstk_profile *profile, const struct shstk_sample *sample)
{
	struct shstk_record *record;
	int err = get_record(profile, sample, &record);

	if (err)
		return err;
	if (is_guessed(sample))
		add_guessed(profile, sample->values);
	return add_values(profile, record, sample->time, sample->cpu, sample->values);
}

int shstk_profile_enter(struct shstk_profile *profile, const struct shstk_sample *sample,
			const struct shstk_record **ret)
{
	struct shstk_record *record;
	int err = get_record(profile, sample, &record);

	*ret = err ? NULL : record;
	if (!err)
		record->guessed |= is_guessed(sample);
	return err;
}

int shstk_profile_count(struct shstk_profile *profile, const struct shstk_record *record,
			uint64_t time, const int64_t *values)
{
	if (record->guessed)
		add_guessed(profile, values);
	return add_values(profile, record, time, 0, values);
}

int64_t shstk_profile_truncated(const struct shstk_profile *profile, unsigned int type)
{
	int64_t sum = 0;

	for (size_t i = 0; type < profile->nr_types && i < profile->nr_records; i++)
		if (profile->records[i]->note == SHSTK_NOTE_TRUNCATED)
			sum = shstk_add(sum, profile->records[i]->values[type]);
	return sum;
}

int64_t shstk_profile_guessed(const struct shstk_profile *profile, unsigned int type)
{
	return type < profile->nr_types ? profile->guessed[type] : 0;
}

int64_t shstk_profile_total(const struct shstk_profile *profile, unsigned int type)
{
	return type < profile->nr_types ? profile->totals[type] : 0;
}

const struct shstk_symbol *shstk_location_symbol(const struct shstk_profile *profile,
						 const struct shstk_location *location)
{
	if (location->symbol)
		return location->symbol;
	if (location->generated)
		return shstk_symbols_generated(profile->symbols, location->map, location->pc,
					       location->how, location->generated);
	return shstk_symbols_lookup(profile->symbols, location->map, location->pc, location->how);
}

void shstk_profile_look_up(struct shstk_profile *profile)
{
	shstk_profile_prepare(profile);
	for (size_t i = 0; i < profile->nr_locations; i++)
		shstk_location_symbol(profile, profile->locations[i]);
}

unsigned int shstk_shown_type(const struct shstk_profile *profile,
			      const struct shstk_write_opts *opts)
{
	if (opts->type && opts->type <= profile->nr_types)
		return opts->type - 1;
	if (profile->default_type && profile->default_type <= profile->nr_types)
		return profile->default_type - 1;
	return profile->nr_types ? profile->nr_types - 1 : 0;
}

unsigned int shstk_profile_find_type(const struct shstk_profile *profile, const char *type)
{
	const struct shstk_write_opts none = { 0 };

	if (!type)
		return profile->nr_types ? shstk_shown_type(profile, &none) + 1 : 0;
	for (unsigned int i = 0; i < profile->nr_types; i++)
		if (!strcmp(profile->types[i].type, type))
			return i + 1;
	return 0;
}
