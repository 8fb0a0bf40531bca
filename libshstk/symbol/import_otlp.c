// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * import_otlp.c - reading messages of OpenTelemetry's profiles, unpacked by protobuf-c.
 *
 * Samples are added in the order in which they stand in the file. Where all Profiles of a scope
 * have the same samples in the same order, as ours have, the values at one place are those of one
 * sample; otherwise each has its own samples.
 *
 * A location that has a number is the same in all messages, and its names may be in another one.
 * One that has no names anywhere is looked up in the file that was mapped there.
 *
 * A message that refers to something that is not in it is refused.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "demangle.h"
#include "import_otlp.h"
#include "import_proto.h"
#include "lives.h"
#include "otlp.h"
#include "otlp.pb-c.h"
#include "store.h"

#define KNOWN_COST 256 /* about the bytes that a location takes here */
#define NO_ENTRY UINT32_MAX

typedef Shstk__Otlp__AnyValue AnyValue;
typedef Shstk__Otlp__KeyValueAndUnit Attribute;
typedef Shstk__Otlp__Dictionary Dictionary;
typedef Shstk__Otlp__Mapping Mapping;
typedef Shstk__Otlp__Location Location;
typedef Shstk__Otlp__Function Function;
typedef Shstk__Otlp__Profile Profile;
typedef Shstk__Otlp__Sample Sample;
typedef Shstk__Otlp__Scope Scope;
typedef Shstk__Otlp__ScopeProfiles ScopeProfiles;
typedef Shstk__Otlp__Stack Stack;
typedef Shstk__Otlp__ValueType ValueType;

/* What an attribute of a sample is. */
enum meaning { LABEL, PID, TID, THREAD, CPU, NOTHING };

/**
 * struct numbered_location - a location that has a number
 * @hh: link in the reader's table.
 * @number: its number, the key.
 * @at: the location; its members @map and @symbol are NULL until it is known.
 * @entry: its entry for stacks, NO_ENTRY: it has none yet.
 */
struct numbered_location {
	UT_hash_handle hh;
	int64_t number;
	struct shstk_location at;
	uint32_t entry;
};

/* A mapping of a file in which names are looked up. */
struct looked {
	UT_hash_handle hh;
	const struct shstk_symmap *key;
	struct shstk_map *map;
};

/**
 * struct shstk_otlp_reader - what is read of a file
 * @in: the file.
 * @begun: the kinds of values are declared.
 * @nr_types: number of kinds of values of the file.
 * @ended: the last message was read.
 * @names_at: what the last message says.
 * @so_far: what the newest message says, or NULL.
 * @clock: what is taken away from times to get those of the recorder's clock, ns.
 * @timed: a sample with a time was read.
 * @last: the latest time of a sample, in ns of the recorder's clock.
 * @known: locations by number.
 * @files: process that has the mappings in which names are looked up, or NULL.
 * @looked: these mappings.
 * @values: values of a sample, with room for all kinds.
 * @labels: labels of a sample, as &struct shstk_sample has them.
 * @nr_labels: bytes in @labels.
 * @max_labels: bytes that @labels has room for.
 * @from: tables of the message that is being read. This and what follows is of one message.
 * @arrays: bytes of the arrays below.
 * @maps: its mappings, NULL until they are needed.
 * @entries: entries for stacks of its locations; NO_ENTRY: not made yet.
 * @notes: enum shstk_note of each location.
 * @meanings: enum meaning of each attribute.
 * @stack: entries of a sample, with room for the longest.
 */
struct shstk_otlp_reader {
	struct shstk_import *in;
	bool begun;
	unsigned int nr_types;
	bool ended;
	uint64_t names_at;
	const char *so_far;
	int64_t clock;
	bool timed;
	uint64_t last;
	struct numbered_location *known;
	struct shstk_symproc *files;
	struct looked *looked;
	int64_t values[SHSTK_PROFILE_MAX_TYPES];
	char *labels;
	size_t nr_labels;
	size_t max_labels;
	const Dictionary *from;
	uint64_t arrays;
	const struct shstk_symmap **maps;
	uint32_t *entries;
	uint8_t *notes;
	uint8_t *meanings;
	uint32_t *stack;
};

struct shstk_otlp_reader *shstk_otlp_reader_create(struct shstk_import *in)
{
	struct shstk_otlp_reader *r = calloc(1, sizeof(*r));

	if (r)
		r->in = in;
	return r;
}

void shstk_otlp_reader_destroy(struct shstk_otlp_reader *r)
{
	struct looked *looked, *next_looked;
	struct numbered_location *known, *next_known;

	HASH_ITER(hh, r->known, known, next_known)
	{
		HASH_DEL(r->known, known);
		free(known);
	}
	HASH_ITER(hh, r->looked, looked, next_looked)
	{
		HASH_DEL(r->looked, looked);
		free(looked);
	}
	free(r->labels);
	free(r);
}

bool shstk_otlp_has_end(const struct shstk_otlp_reader *r)
{
	return r->ended;
}

uint64_t shstk_otlp_names_at(const struct shstk_otlp_reader *r)
{
	return r->names_at;
}

const char *shstk_otlp_so_far(const struct shstk_otlp_reader *r)
{
	return r->so_far;
}

static const char *keep_text(struct shstk_otlp_reader *r, const char *text)
{
	return shstk_pool_text(r->in->profile->text, text, strlen(text));
}

/* Returns a string of the string table, or NULL if there is no such string. */
static const char *text(const struct shstk_otlp_reader *r, int32_t i)
{
	return shstk_proto_text(r->from->string_table, r->from->n_string_table, i);
}

/* ---- Attributes ---- */

static const Attribute *attribute(const struct shstk_otlp_reader *r, int32_t i)
{
	return i > 0 && (size_t)i < r->from->n_attribute_table ? r->from->attribute_table[i] : NULL;
}

static const AnyValue *find(const struct shstk_otlp_reader *r, const int32_t *list, size_t nr,
			    const char *key)
{
	for (size_t i = 0; i < nr; i++) {
		const Attribute *a = attribute(r, list[i]);
		const char *name = a ? text(r, a->key_strindex) : NULL;

		if (name && !strcmp(name, key))
			return a->value;
	}
	return NULL;
}

static const char *text_of(const AnyValue *value)
{
	return value && value->value_case == SHSTK__OTLP__ANY_VALUE__VALUE_STRING_VALUE ?
		       value->string_value :
		       NULL;
}

static int64_t int_of(const AnyValue *value, int64_t otherwise)
{
	return value && value->value_case == SHSTK__OTLP__ANY_VALUE__VALUE_INT_VALUE ?
		       value->int_value :
		       otherwise;
}

static bool is_true(const AnyValue *value)
{
	return value && value->value_case == SHSTK__OTLP__ANY_VALUE__VALUE_BOOL_VALUE &&
	       value->bool_value;
}

/* Returns what an attribute means for a sample. */
static enum meaning meaning_of(const struct shstk_otlp_reader *r, const Attribute *a)
{
	static const struct {
		const char *name;
		enum meaning meaning;
	} numbers[] = {
		{ SHSTK_OTLP_PID, PID },
		{ SHSTK_OTLP_TID, TID },
		{ SHSTK_OTLP_CPU, CPU },
	};
	const char *key = text(r, a->key_strindex);

	if (!key)
		return NOTHING;
	if (text_of(a->value))
		return strcmp(key, SHSTK_OTLP_THREAD) ? LABEL : THREAD;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (!strcmp(key, numbers[i].name) && int_of(a->value, -1) >= 0 &&
		    int_of(a->value, 0) < INT32_MAX)
			return numbers[i].meaning;
	return NOTHING;
}

/* ---- What a message says of the recording ---- */

static const Shstk__Otlp__TextList *list_of(const AnyValue *value)
{
	return value && value->value_case == SHSTK__OTLP__ANY_VALUE__VALUE_ARRAY_VALUE ?
		       value->array_value :
		       NULL;
}

static int read_lines(struct shstk_otlp_reader *r, const AnyValue *value,
		      int (*keep)(struct shstk_profile *profile, const char *text))
{
	const Shstk__Otlp__TextList *list = list_of(value);
	int err = 0;

	for (size_t i = 0; list && i < list->n_values && !err; i++) {
		const char *line = list->values[i]->string_value;

		err = shstk_import_take(r->in, strlen(line) + SHSTK_IMPORT_FRAME);
		if (!err && keep(r->in->profile, line))
			err = shstk_import_no_memory(r->in);
	}
	return err;
}

static const AnyValue *of_scope(const Scope *scope, const char *key)
{
	for (size_t i = 0; scope && i < scope->n_attributes; i++)
		if (!strcmp(scope->attributes[i]->key, key))
			return scope->attributes[i]->value;
	return NULL;
}

static int read_scope(struct shstk_otlp_reader *r, const Scope *scope)
{
	struct shstk_profile *profile = r->in->profile;
	const char *title = text_of(of_scope(scope, SHSTK_OTLP_TITLE));
	const char *so_far = text_of(of_scope(scope, SHSTK_OTLP_SO_FAR));

	r->clock = int_of(of_scope(scope, SHSTK_OTLP_CLOCK), r->clock);
	if (title && !profile->title)
		profile->title = keep_text(r, title);
	if (so_far && shstk_import_take(r->in, strlen(so_far) + SHSTK_IMPORT_FRAME))
		return -E2BIG;
	if (so_far)
		r->so_far = keep_text(r, so_far);
	return 0;
}

static int keep_life(struct shstk_otlp_reader *r, const char *line)
{
	struct shstk_life life;
	int err = shstk_import_take(r->in, 2 * sizeof(life) + strlen(line));

	if (err || !shstk_life_parse(line, r->clock, &life))
		return err;
	return shstk_import_life(r->in, &life);
}

/* Reads which processes began and ended. What is no such line is passed over. */
static int read_lives(struct shstk_otlp_reader *r, const Scope *scope)
{
	const Shstk__Otlp__TextList *list = list_of(of_scope(scope, SHSTK_OTLP_LIVES));
	int err = 0;

	for (size_t i = 0; list && i < list->n_values && !err; i++)
		err = keep_life(r, list->values[i]->string_value);
	return err;
}

static int read_end(struct shstk_otlp_reader *r, const Scope *scope)
{
	int err;

	if (!is_true(of_scope(scope, SHSTK_OTLP_END)))
		return 0;
	r->ended = true;
	r->names_at = int_of(of_scope(scope, SHSTK_OTLP_NAMES), 0);
	err = read_lines(r, of_scope(scope, SHSTK_OTLP_COMMENTS), shstk_profile_comment);
	return err ? err :
		     read_lines(r, of_scope(scope, SHSTK_OTLP_CAUTIONS), shstk_profile_caution);
}

/* Returns the index of a Profile's kind of values, -1 if the profile has no such kind. */
static int type_of(const struct shstk_otlp_reader *r, const Profile *from)
{
	const struct shstk_profile *profile = r->in->profile;
	const char *type = from->sample_type ? text(r, from->sample_type->type_strindex) : "";
	const char *unit = from->sample_type ? text(r, from->sample_type->unit_strindex) : "";

	for (unsigned int i = 0; type && unit && i < r->nr_types; i++)
		if (!strcmp(type, profile->types[i].type) && !strcmp(unit, profile->types[i].unit))
			return i;
	return -1;
}

static int declare_type(struct shstk_otlp_reader *r, const Profile *from)
{
	struct shstk_profile *profile = r->in->profile;
	const char *type = from->sample_type ? text(r, from->sample_type->type_strindex) : "";
	const char *unit = from->sample_type ? text(r, from->sample_type->unit_strindex) : "";
	const char *note;
	int err;

	if (!type || !unit)
		return shstk_proto_broken(r->in, "a kind of values has no name");
	if (type_of(r, from) >= 0)
		return 0;
	err = shstk_import_type(r->in, r->nr_types, type, unit);
	if (err)
		return err;
	r->nr_types++;
	if (is_true(find(r, from->attribute_indices, from->n_attribute_indices,
			 SHSTK_OTLP_DEFAULT)) &&
	    r->in->source == 1)
		profile->default_type = r->nr_types;
	note = text_of(
		find(r, from->attribute_indices, from->n_attribute_indices, SHSTK_OTLP_NOTE));
	if (note && shstk_profile_set_note(profile, r->nr_types - 1, note))
		return shstk_import_no_memory(r->in);
	return 0;
}

/*
 * Sets the time of the profile. With several files, it begins when the first one began, and its
 * duration is the sum of theirs; times of samples are since the beginning of their own file.
 */
static int read_time(struct shstk_otlp_reader *r, const Profile *from)
{
	struct shstk_profile *profile = r->in->profile;
	const ValueType *period = from->period_type;
	const char *type = period ? text(r, period->type_strindex) : NULL;
	const char *unit = period ? text(r, period->unit_strindex) : NULL;
	int64_t start = from->time_unix_nano;

	shstk_profile_set_origin(profile, from->time_unix_nano - (uint64_t)r->clock);
	if (r->in->source > 1 && profile->start && (!start || profile->start < start))
		start = profile->start;
	shstk_profile_set_time(profile, start, shstk_add(profile->duration, from->duration_nano));
	if (r->in->source > 1 || !type || !unit)
		return 0;
	return shstk_profile_set_period(profile, type, unit, from->period) ?
		       shstk_import_no_memory(r->in) :
		       0;
}

/* Declares all kinds of values that the message has. */
static int begin(struct shstk_otlp_reader *r, const Shstk__Otlp__ProfilesData *from)
{
	const Profile *first = NULL;
	int err = 0;

	for (size_t i = 0; i < from->n_resource_profiles; i++) {
		const Shstk__Otlp__ResourceProfiles *resource = from->resource_profiles[i];

		for (size_t j = 0; j < resource->n_scope_profiles; j++) {
			const ScopeProfiles *scope = resource->scope_profiles[j];

			for (size_t k = 0; k < scope->n_profiles && !err; k++) {
				first = first ? first : scope->profiles[k];
				err = declare_type(r, scope->profiles[k]);
			}
		}
	}
	if (err || !first)
		return err;
	r->begun = true;
	err = shstk_import_types_end(r->in, r->nr_types);
	return err ? err : read_time(r, first);
}

/* ---- Mappings and locations ---- */

static int get_map(struct shstk_otlp_reader *r, int32_t i, const struct shstk_symmap **ret)
{
	const Mapping *m;
	const char *path, *build_id, *hash;
	struct shstk_symmap *new;
	int64_t kind;
	int err;

	*ret = NULL;
	if (!i)
		return 0;
	if (i < 0 || (size_t)i >= r->from->n_mapping_table)
		return shstk_proto_broken(r->in, "a location is in a mapping that is not there");
	*ret = r->maps[i];
	if (*ret)
		return 0;
	m = r->from->mapping_table[i];
	path = text(r, m->filename_strindex);
	if (!path)
		return shstk_proto_broken(r->in, "the name of a mapping is not there");
	build_id =
		text_of(find(r, m->attribute_indices, m->n_attribute_indices, SHSTK_OTLP_BUILD_ID));
	err = shstk_import_take(r->in, strlen(path) + 4 * SHSTK_IMPORT_FRAME);
	if (err)
		return err;
	new = (struct shstk_symmap *)shstk_profile_name_map(r->in->profile, path, m->memory_start,
							    m->memory_limit, m->file_offset,
							    build_id ? build_id : "");
	if (!new)
		return shstk_import_no_memory(r->in);
	hash = text_of(find(r, m->attribute_indices, m->n_attribute_indices, SHSTK_OTLP_HTLHASH));
	if (hash && !shstk_profile_hash_map(r->in->profile, new, hash))
		return shstk_import_no_memory(r->in);
	kind = int_of(find(r, m->attribute_indices, m->n_attribute_indices, SHSTK_OTLP_KIND), -1);
	if ((kind >= SHSTK_SYMMAP_FILE && kind <= SHSTK_SYMMAP_NONE) ||
	    kind == SHSTK_SYMMAP_LANGUAGE)
		new->kind = kind;
	if (is_true(find(r, m->attribute_indices, m->n_attribute_indices, SHSTK_OTLP_MAIN)))
		r->in->profile->main_map = new;
	*ret = r->maps[i] = new;
	return 0;
}

/* Finds the mapping in whose file the names of @map are looked up. */
static int get_looked(struct shstk_otlp_reader *r, const struct shstk_symmap *map,
		      struct shstk_map **ret)
{
	const struct shstk_symmap_info info = {
		.start = map->start,
		.end = map->end,
		.offset = map->offset,
		.path = map->path,
		.build_id = map->build_id,
		.build_id_size = map->build_id_size,
	};
	struct looked *looked;
	int err;

	*ret = NULL;
	HASH_FIND_PTR(r->looked, &map, looked);
	if (looked) {
		*ret = looked->map;
		return 0;
	}
	err = shstk_import_take(r->in, KNOWN_COST);
	if (err)
		return err;
	if (!r->files && shstk_symproc_create(r->in->profile->symbols, 0, &r->files))
		return shstk_import_no_memory(r->in);
	looked = calloc(1, sizeof(*looked));
	if (!looked)
		return shstk_import_no_memory(r->in);
	looked->key = map;
	looked->map = shstk_map_create(r->files, &info);
	HASH_ADD_PTR(r->looked, key, looked);
	if (!looked->hh.tbl || !looked->map)
		return shstk_import_no_memory(r->in);
	*ret = looked->map;
	return 0;
}

/* Names a location that came without names: by its file, or else by its place. */
static int look_up(struct shstk_otlp_reader *r, const struct shstk_symmap *map,
		   struct shstk_location *to)
{
	struct shstk_symframe frame = { 0 };
	const struct shstk_named named = {
		.map = map, .address = to->pc, .nr = 1, .frames = &frame
	};
	struct shstk_map *looked;
	int err;

	if (map && map->kind == SHSTK_SYMMAP_FILE && *map->path == '/' && map->start < map->end) {
		err = get_looked(r, map, &looked);
		if (err)
			return err;
		to->symbol = shstk_symbols_lookup(r->in->profile->symbols, &looked->pub, to->pc,
						  to->how);
		return 0;
	}
	frame.function = shstk_place_name(r->in->profile->text, map ? map->name : NULL,
					  map ? to->pc - map->start + map->offset : to->pc);
	to->symbol = frame.function ? shstk_named_symbol(r->in->profile, &named) : NULL;
	return to->symbol ? 0 : shstk_import_no_memory(r->in);
}

/* Reads the functions of a location; @frames has room for all of them. */
static int read_frames(struct shstk_otlp_reader *r, const Location *from,
		       struct shstk_symframe *frames)
{
	for (size_t i = 0; i < from->n_lines; i++) {
		const int32_t at = from->lines[i]->function_index;
		const Function *function;

		if (at < 0 || (size_t)at >= r->from->n_function_table)
			return shstk_proto_broken(r->in,
						  "a location is in a function that is not there");
		function = r->from->function_table[at];
		frames[i] = (struct shstk_symframe){
			.function = text(r, function->name_strindex),
			.linkage = text(r, function->system_name_strindex),
			.file = text(r, function->filename_strindex),
			.line = shstk_proto_line(from->lines[i]->line),
			.start_line = shstk_proto_line(function->start_line),
		};
		if (shstk_proto_frame(r->in, &frames[i]))
			return -EINVAL;
	}
	return 0;
}

/* Returns the number of a location, 0 if it has none. */
static int64_t number_of(const struct shstk_otlp_reader *r, const Location *from)
{
	return int_of(find(r, from->attribute_indices, from->n_attribute_indices,
			   SHSTK_OTLP_LOCATION),
		      0);
}

/* Names a location by the names that it came with. */
static int take_names(struct shstk_otlp_reader *r, const Location *from,
		      const struct shstk_symmap *map, struct shstk_location *to)
{
	struct shstk_symframe frames[SHSTK_FRAMES_MAX] = { 0 };
	const struct shstk_named named = {
		.map = map, .address = to->pc, .nr = from->n_lines, .frames = frames
	};
	struct shstk_symbol *symbol;
	int err;

	if (from->n_lines > SHSTK_FRAMES_MAX)
		return shstk_import_fail(r->in, -E2BIG, "has more than %d functions at one address",
					 SHSTK_FRAMES_MAX);
	err = read_frames(r, from, frames);
	if (!err)
		err = shstk_import_take_named(r->in, &named);
	if (err)
		return err;
	symbol = (struct shstk_symbol *)shstk_named_symbol(r->in->profile, &named);
	if (!symbol)
		return shstk_import_no_memory(r->in);
	symbol->start = int_of(find(r, from->attribute_indices, from->n_attribute_indices,
				    SHSTK_OTLP_FUNCTION),
			       0);
	symbol->offset = symbol->start ? to->pc - symbol->start : 0;
	if (number_of(r, from) > 0)
		symbol->resolved = !is_true(find(r, from->attribute_indices,
						 from->n_attribute_indices, SHSTK_OTLP_UNRESOLVED));
	to->symbol = symbol;
	return 0;
}

/* Fills @to with the location @i of the message. Without names, @to->symbol is NULL. */
static int read_location(struct shstk_otlp_reader *r, size_t i, struct shstk_location *to)
{
	static const struct shstk_symmap unknown[] = {
		{ .kind = SHSTK_SYMMAP_NONE, .path = "", .name = "[unknown]" },
		{ .kind = SHSTK_SYMMAP_NAMED, .path = "", .name = "[unknown]" },
	};
	const Location *from = r->from->location_table[i];
	const struct shstk_symmap *map;
	int err = get_map(r, from->mapping_index, &map);

	if (err)
		return err;
	*to = (struct shstk_location){ .pc = from->address, .how = SHSTK_SYMADDR_PC };
	if (is_true(find(r, from->attribute_indices, from->n_attribute_indices,
			 SHSTK_OTLP_RETURN))) {
		to->pc++;
		to->how = SHSTK_SYMADDR_RETURN;
	}
	to->guessed = is_true(
		find(r, from->attribute_indices, from->n_attribute_indices, SHSTK_OTLP_GUESSED));
	to->map = map ? map : &unknown[!to->pc];
	return from->n_lines ? take_names(r, from, map, to) : 0;
}

static struct numbered_location *find_known(const struct shstk_otlp_reader *r, int64_t number)
{
	struct numbered_location *found;

	HASH_FIND(hh, r->known, &number, sizeof(number), found);
	return found;
}

static int add_known(struct shstk_otlp_reader *r, int64_t number, struct numbered_location **ret)
{
	int err = shstk_import_take(r->in, KNOWN_COST);
	struct numbered_location *new;

	if (err)
		return err;
	new = calloc(1, sizeof(*new));
	if (!new)
		return shstk_import_no_memory(r->in);
	new->number = number;
	new->entry = NO_ENTRY;
	HASH_ADD(hh, r->known, number, sizeof(new->number), new);
	if (!new->hh.tbl) {
		free(new);
		return shstk_import_no_memory(r->in);
	}
	*ret = new;
	return 0;
}

/* Reads the names of all locations of the message that have a number. */
static int read_names(struct shstk_otlp_reader *r)
{
	int err = 0;

	for (size_t i = 1; i < r->from->n_location_table && !err; i++) {
		const Location *from = r->from->location_table[i];
		int64_t number = number_of(r, from);
		struct numbered_location *known;

		if (number <= 0 || !from->n_lines || find_known(r, number))
			continue;
		err = add_known(r, number, &known);
		if (!err)
			err = read_location(r, i, &known->at);
	}
	return err;
}

static int make_entry(struct shstk_otlp_reader *r, const struct shstk_location *at, uint32_t *ret)
{
	const struct shstk_location *new = shstk_location_add(r->in->profile, at);

	if (!new)
		return shstk_import_no_memory(r->in);
	*ret = new->id - 1;
	return 0;
}

/* Makes the entry of a location that has a number. */
static int enter_known(struct shstk_otlp_reader *r, size_t i, int64_t number)
{
	struct numbered_location *known = find_known(r, number);
	int err = 0;

	if (!known) {
		err = add_known(r, number, &known);
		if (!err)
			err = read_location(r, i, &known->at);
	}
	if (!err && !known->at.symbol)
		err = look_up(r, known->at.map->kind < SHSTK_SYMMAP_NONE ? known->at.map : NULL,
			      &known->at);
	if (!err && known->entry == NO_ENTRY)
		err = make_entry(r, &known->at, &known->entry);
	if (!err)
		r->entries[i] = known->entry;
	return err;
}

/*
 * Makes the entry of a location without a number: equal ones of several messages are the same. A
 * location without an address may stand for a note.
 */
static int enter_other(struct shstk_otlp_reader *r, size_t i)
{
	struct shstk_location at;
	int err = read_location(r, i, &at);

	if (!err && !at.symbol)
		err = look_up(r, at.map->kind < SHSTK_SYMMAP_NONE ? at.map : NULL, &at);
	if (err)
		return err;
	if (at.map->kind == SHSTK_SYMMAP_NAMED && at.symbol->nr == 1)
		r->notes[i] = shstk_import_note(at.symbol->frames[0].function);
	if (r->notes[i]) {
		r->entries[i] = 0;
		return 0;
	}
	return shstk_import_name(r->in,
				 &(struct shstk_named){
					 .map = at.map->kind < SHSTK_SYMMAP_NONE ? at.map : NULL,
					 .address = at.pc,
					 .guessed = at.guessed,
					 .nr = at.symbol->nr,
					 .frames = at.symbol->frames,
				 },
				 &r->entries[i]);
}

static int enter(struct shstk_otlp_reader *r, int32_t i)
{
	int64_t number;

	if (i <= 0 || (size_t)i >= r->from->n_location_table)
		return shstk_proto_broken(r->in, "a stack has a location that is not there");
	if (r->entries[i] != NO_ENTRY)
		return 0;
	number = number_of(r, r->from->location_table[i]);
	return number > 0 ? enter_known(r, i, number) : enter_other(r, i);
}

/* ---- Samples ---- */

static int read_stack(struct shstk_otlp_reader *r, int32_t at, struct shstk_sample *sample)
{
	const Stack *stack;
	int err = 0;

	sample->locations = r->stack;
	if (!at)
		return 0;
	if (at < 0 || (size_t)at >= r->from->n_stack_table)
		return shstk_proto_broken(r->in, "a sample has a stack that is not there");
	stack = r->from->stack_table[at];
	for (size_t i = 0; i < stack->n_location_indices && !err; i++) {
		int32_t location = stack->location_indices[i];

		err = enter(r, location);
		if (err)
			break;
		if (r->notes[location])
			sample->note = r->notes[location];
		else
			r->stack[sample->nr++] = r->entries[location];
	}
	return err;
}

static int add_label(struct shstk_otlp_reader *r, const char *word)
{
	size_t size = strlen(word) + 1;

	while (r->max_labels - r->nr_labels < size) {
		size_t max = r->max_labels ? 2 * r->max_labels : 1024;
		int err = shstk_import_take(r->in, max);
		char *more;

		if (err)
			return err;
		more = realloc(r->labels, max);
		if (!more)
			return shstk_import_no_memory(r->in);
		r->labels = more;
		r->max_labels = max;
	}
	memcpy(r->labels + r->nr_labels, word, size);
	r->nr_labels += size;
	return 0;
}

static int read_attribute(struct shstk_otlp_reader *r, int32_t i, struct shstk_sample *sample,
			  int *pid)
{
	const Attribute *a = attribute(r, i);
	int err = 0;

	if (!a)
		return i ? shstk_proto_broken(r->in,
					      "a sample has an attribute that is not there") :
			   0;
	switch (r->meanings[i]) {
	case PID:
		*pid = int_of(a->value, 0);
		break;
	case TID:
		sample->tid = int_of(a->value, 0);
		break;
	case CPU:
		sample->cpu = int_of(a->value, 0) + 1;
		break;
	case THREAD:
		sample->comm = text_of(a->value);
		break;
	case LABEL:
		err = add_label(r, shstk_otlp_to_label(text(r, a->key_strindex)));
		if (!err)
			err = add_label(r, text_of(a->value));
		break;
	default:
		break;
	}
	return err;
}

static int add_id(struct shstk_otlp_reader *r, const char *key, const ProtobufCBinaryData *id)
{
	char text[2 * SHSTK_OTLP_TRACE_ID + 1];
	int err = add_label(r, key);

	for (size_t i = 0; i < id->len; i++)
		snprintf(text + 2 * i, 3, "%02x", id->data[i]);
	return err ? err : add_label(r, text);
}

/* Reads the span to which a sample belongs, as two labels. Ids of another size are none. */
static int read_link(struct shstk_otlp_reader *r, int32_t i)
{
	const Shstk__Otlp__Link *link;
	int err;

	if (!i)
		return 0;
	if (i < 0 || (size_t)i >= r->from->n_link_table)
		return shstk_proto_broken(r->in, "a sample has a link that is not there");
	link = r->from->link_table[i];
	if (link->trace_id.len != SHSTK_OTLP_TRACE_ID || link->span_id.len != SHSTK_OTLP_SPAN_ID)
		return 0;
	err = add_id(r, SHSTK_OTLP_TRACE, &link->trace_id);
	return err ? err : add_id(r, SHSTK_OTLP_SPAN, &link->span_id);
}

/* Returns the @k-th value of a sample, which is 1 where it has only times. */
static int64_t value_at(const Sample *sample, size_t k)
{
	return !sample->n_values ? 1 : k < sample->n_values ? sample->values[k] : 0;
}

/* Adds the @k-th observation of the samples at place @i of @nr Profiles. */
static int add_observation(struct shstk_otlp_reader *r, struct shstk_sample sample, int pid,
			   Profile *const *profiles, size_t nr, size_t i, size_t k)
{
	const Sample *first = profiles[0]->samples[i];

	memset(r->values, 0, sizeof(r->values));
	for (size_t p = 0; p < nr; p++) {
		int type = type_of(r, profiles[p]);

		if (type < 0)
			return shstk_import_fail(r->in, -EINVAL,
						 "has other kinds of values from some message on");
		r->values[type] = shstk_add(r->values[type], value_at(profiles[p]->samples[i], k));
	}
	if (first->n_timestamps_unix_nano)
		sample.time = first->timestamps_unix_nano[k] - (uint64_t)r->clock;
	if (sample.time > r->last)
		r->last = sample.time;
	return shstk_import_sample(r->in, &sample, pid, r->values);
}

static int read_sample(struct shstk_otlp_reader *r, Profile *const *profiles, size_t nr, size_t i)
{
	const Sample *first = profiles[0]->samples[i];
	struct shstk_sample sample = { .tid = -1 };
	size_t times = first->n_timestamps_unix_nano, observations;
	int pid = -1, err;

	if (times && !r->timed && shstk_profile_empty(r->in->profile))
		shstk_profile_keep_times(r->in->profile, r->in->opts->keep_times);
	r->timed |= times;
	if (times && first->n_values && first->n_values != times)
		return shstk_proto_broken(r->in, "a sample has not as many values as times");
	observations = times ? times : first->n_values;
	err = read_stack(r, first->stack_index, &sample);
	r->nr_labels = 0;
	for (size_t k = 0; k < first->n_attribute_indices && !err; k++)
		err = read_attribute(r, first->attribute_indices[k], &sample, &pid);
	if (!err)
		err = read_link(r, first->link_index);
	sample.labels = r->labels;
	sample.labels_size = r->nr_labels;
	for (size_t k = 0; k < observations && !err; k++)
		err = add_observation(r, sample, pid, profiles, nr, i, k);
	return err;
}

/* Returns whether two samples differ in nothing but their values. */
static bool same_sample(const Sample *a, const Sample *b)
{
	return a->stack_index == b->stack_index && a->link_index == b->link_index &&
	       a->n_values == b->n_values && a->n_attribute_indices == b->n_attribute_indices &&
	       a->n_timestamps_unix_nano == b->n_timestamps_unix_nano &&
	       (!a->n_attribute_indices ||
		!memcmp(a->attribute_indices, b->attribute_indices,
			a->n_attribute_indices * sizeof(*a->attribute_indices))) &&
	       (!a->n_timestamps_unix_nano ||
		!memcmp(a->timestamps_unix_nano, b->timestamps_unix_nano,
			a->n_timestamps_unix_nano * sizeof(*a->timestamps_unix_nano)));
}

/* Returns whether all Profiles have the same samples in the same order. */
static bool in_step(Profile *const *profiles, size_t nr)
{
	for (size_t p = 1; p < nr; p++) {
		if (profiles[p]->n_samples != profiles[0]->n_samples)
			return false;
		for (size_t i = 0; i < profiles[0]->n_samples; i++)
			if (!same_sample(profiles[0]->samples[i], profiles[p]->samples[i]))
				return false;
	}
	return true;
}

static int read_profiles(struct shstk_otlp_reader *r, Profile *const *profiles, size_t nr)
{
	int err = 0;

	for (size_t i = 0; i < profiles[0]->n_samples && !err; i++)
		err = read_sample(r, profiles, nr, i);
	return err;
}

static int read_samples(struct shstk_otlp_reader *r, const ScopeProfiles *scope)
{
	int err = 0;

	if (scope->n_profiles && in_step(scope->profiles, scope->n_profiles))
		return read_profiles(r, scope->profiles, scope->n_profiles);
	for (size_t p = 0; p < scope->n_profiles && !err; p++)
		err = read_profiles(r, &scope->profiles[p], 1);
	return err;
}

/* ---- Messages ---- */

/* Makes what is kept of the tables of one message. */
static int open_tables(struct shstk_otlp_reader *r, const Dictionary *from)
{
	const uint64_t before = r->in->account->memory;
	size_t most = 0;

	r->from = from;
	for (size_t i = 0; i < from->n_stack_table; i++)
		if (from->stack_table[i]->n_location_indices > most)
			most = from->stack_table[i]->n_location_indices;
	r->maps = shstk_proto_array(r->in, from->n_mapping_table, sizeof(*r->maps));
	r->entries = shstk_proto_array(r->in, from->n_location_table, sizeof(*r->entries));
	r->notes = shstk_proto_array(r->in, from->n_location_table, sizeof(*r->notes));
	r->meanings = shstk_proto_array(r->in, from->n_attribute_table, sizeof(*r->meanings));
	r->stack = shstk_proto_array(r->in, most, sizeof(*r->stack));
	r->arrays = r->in->account->memory - before;
	if (!r->maps || !r->entries || !r->notes || !r->meanings || !r->stack)
		return *r->in->why ? -E2BIG : shstk_import_no_memory(r->in);
	memset(r->entries, 0xff, (from->n_location_table + 1) * sizeof(*r->entries));
	for (size_t i = 0; i < from->n_attribute_table; i++)
		r->meanings[i] = meaning_of(r, from->attribute_table[i]);
	return 0;
}

static void close_tables(struct shstk_otlp_reader *r)
{
	free(r->maps);
	free(r->entries);
	free(r->notes);
	free(r->meanings);
	free(r->stack);
	r->maps = NULL;
	r->entries = r->stack = NULL;
	r->notes = r->meanings = NULL;
	r->from = NULL;
	shstk_account_give(r->in->account, r->arrays);
	r->arrays = 0;
}

/* Names are read only where the last message says that there are no samples any more. */
static int refuse_samples(struct shstk_otlp_reader *r, const ScopeProfiles *scope)
{
	for (size_t i = 0; i < scope->n_profiles; i++)
		if (scope->profiles[i]->n_samples)
			return shstk_proto_broken(
				r->in,
				"samples follow its names, as in files that were put together: give each by itself");
	return 0;
}

static int read_part(struct shstk_otlp_reader *r, const ScopeProfiles *scope,
		     enum shstk_otlp_part part)
{
	int err;

	if (part == SHSTK_OTLP_PART_END)
		return read_end(r, scope->scope);
	if (part == SHSTK_OTLP_PART_NAMES)
		return refuse_samples(r, scope);
	err = read_scope(r, scope->scope);
	if (!err)
		err = read_samples(r, scope);
	return err ? err : read_lives(r, scope->scope);
}

/* Reads what the scopes of a message have. */
static int read_scopes(struct shstk_otlp_reader *r, const Shstk__Otlp__ProfilesData *from,
		       enum shstk_otlp_part part)
{
	int err = 0;

	for (size_t i = 0; i < from->n_resource_profiles; i++) {
		const Shstk__Otlp__ResourceProfiles *resource = from->resource_profiles[i];

		for (size_t j = 0; j < resource->n_scope_profiles && !err; j++)
			err = read_part(r, resource->scope_profiles[j], part);
	}
	return err;
}

/*
 * Declares the kinds of values, unless that is done: by the last message if there is one, as it
 * tells the duration, or else by the first one.
 */
static int begin_once(struct shstk_otlp_reader *r, const Shstk__Otlp__ProfilesData *from,
		      enum shstk_otlp_part part)
{
	int err = 0;

	if (r->begun || (!r->ended && part != SHSTK_OTLP_PART_SAMPLES))
		return 0;
	if (from->n_resource_profiles && from->resource_profiles[0]->n_scope_profiles)
		err = read_scope(r, from->resource_profiles[0]->scope_profiles[0]->scope);
	return err ? err : begin(r, from);
}

static int read_message(struct shstk_otlp_reader *r, const Shstk__Otlp__ProfilesData *from,
			enum shstk_otlp_part part)
{
	static const Dictionary nothing = SHSTK__OTLP__DICTIONARY__INIT;
	int err = open_tables(r, from->dictionary ? from->dictionary : &nothing);

	if (!err && part == SHSTK_OTLP_PART_END)
		err = read_scopes(r, from, part);
	if (!err)
		err = begin_once(r, from, part);
	if (!err && part == SHSTK_OTLP_PART_NAMES)
		err = read_names(r);
	if (!err && part != SHSTK_OTLP_PART_END)
		err = read_scopes(r, from, part);
	close_tables(r);
	return err;
}

int shstk_otlp_read(struct shstk_otlp_reader *r, const uint8_t *data, size_t size,
		    enum shstk_otlp_part part)
{
	struct shstk_import *in = r->in;
	ProtobufCAllocator allocator = shstk_proto_allocator(in);
	uint64_t before = in->account->memory;
	Shstk__Otlp__ProfilesData *from =
		shstk__otlp__profiles_data__unpack(&allocator, size, data);
	uint64_t unpacked = in->account->memory - before;
	int err;

	if (!from && *in->why)
		return -E2BIG;
	if (!from)
		return shstk_import_fail(in, -EINVAL,
					 "has a message that is none of OpenTelemetry's profiles");
	err = read_message(r, from, part);
	shstk__otlp__profiles_data__free_unpacked(from, &allocator);
	shstk_account_give(in->account, unpacked);
	return err;
}

int shstk_otlp_finish(struct shstk_otlp_reader *r)
{
	struct shstk_profile *profile = r->in->profile;

	if (!r->begun)
		return shstk_import_types_end(r->in, 0);
	if (!r->ended && r->last > profile->origin)
		shstk_profile_set_time(profile, profile->start,
				       shstk_add(profile->duration, r->last - profile->origin));
	return 0;
}
