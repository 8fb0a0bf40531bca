// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * otlp.c - makes messages of OpenTelemetry's profiles, as otlp.h describes.
 *
 * The message is built in one pool. Tables give strings, attributes, mappings, functions, locations
 * and stacks their numbers in it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "builder.h"
#include "hex.h"
#include "htlhash.h"
#include "language.h"
#include "lives.h"
#include "otlp.h"
#include "otlp.pb-c.h"
#include "otlp_resource.h"
#include "waits.h"

typedef Shstk__Otlp__AnyValue AnyValue;
typedef Shstk__Otlp__KeyValue KeyValue;
typedef Shstk__Otlp__KeyValueAndUnit Attribute;
typedef Shstk__Otlp__Link Link;
typedef Shstk__Otlp__Mapping Mapping;
typedef Shstk__Otlp__Location Location;
typedef Shstk__Otlp__Line Line;
typedef Shstk__Otlp__Function Function;
typedef Shstk__Otlp__Stack Stack;
typedef Shstk__Otlp__Sample Sample;
typedef Shstk__Otlp__Profile Profile;
typedef Shstk__Otlp__ValueType ValueType;

#define MOST_ATTRIBUTES 8 /* attributes of a thing besides labels */
#define MOST_RESOURCE 16 /* attributes of a resource besides those of the caller */

/**
 * struct number - the number of an element in a table of the message
 * @hh: link in the table of numbers.
 * @id: the number.
 * @key: what tells the element from others.
 */
struct number {
	UT_hash_handle hh;
	int32_t id;
	uint8_t key[];
};

/**
 * struct otlp_table - a table of the message
 * @numbers: numbers of the elements, by their keys.
 * @list: the elements.
 */
struct otlp_table {
	struct number *numbers;
	struct shstk_message_items list;
};

/* What all samples of a record share in a message. */
struct shared {
	UT_hash_handle hh;
	const struct shstk_record *record;
	int32_t stack;
	int32_t link;
	size_t nr;
	int32_t *attributes;
};

/**
 * struct otlp_group - the samples of one resource
 * @hh: link in the builder's table.
 * @key: the process that the resource is, or NULL: all of them.
 * @first: the first of its records, or NULL.
 * @number: number of the group, from 0.
 * @profiles: a Profile of each kind of values.
 * @samples: the samples of each.
 * @scope: what holds the Profiles.
 */
struct otlp_group {
	UT_hash_handle hh;
	const struct shstk_symproc *key;
	const struct shstk_record *first;
	uint32_t number;
	Profile *profiles[SHSTK_PROFILE_MAX_TYPES];
	struct shstk_message_items samples[SHSTK_PROFILE_MAX_TYPES];
	Shstk__Otlp__ScopeProfiles *scope;
};

/**
 * struct otlp_builder - a message being built
 * @message: what it is made of.
 * @profile: the profile of the samples.
 * @main: mapping of the command's program, or NULL.
 * @memory: memory of the message.
 * @texts: strings.
 * @attributes: attributes of mappings, locations, samples and Profiles.
 * @mappings: mappings.
 * @functions: functions.
 * @locations: locations.
 * @stacks: stacks.
 * @links: spans of traces.
 * @records: what the records have in the message.
 * @groups: groups of samples by their keys.
 * @resources: their resources.
 */
struct otlp_builder {
	const struct shstk_otlp_message *message;
	const struct shstk_profile *profile;
	const struct shstk_symmap *main;
	struct shstk_builder memory;
	struct otlp_table texts;
	struct otlp_table attributes;
	struct otlp_table mappings;
	struct otlp_table functions;
	struct otlp_table locations;
	struct otlp_table stacks;
	struct otlp_table links;
	struct shared *records;
	struct otlp_group *groups;
	struct shstk_message_items resources;
};

/* ---- Labels ---- */

static const struct {
	const char *label, *name;
} label_names[] = {
	{ "command", "process.command_line" },
	{ "container", "container.id" },
	{ "process", "process.executable.name" },
};

const char *shstk_otlp_from_label(const char *key)
{
	for (size_t i = 0; i < sizeof(label_names) / sizeof(*label_names); i++)
		if (!strcmp(key, label_names[i].label))
			return label_names[i].name;
	return key;
}

const char *shstk_otlp_to_label(const char *name)
{
	for (size_t i = 0; i < sizeof(label_names) / sizeof(*label_names); i++)
		if (!strcmp(name, label_names[i].name))
			return label_names[i].label;
	return name;
}

/* ---- Memory and tables ---- */

static int32_t push(struct otlp_builder *b, struct otlp_table *table, void *item)
{
	return shstk_builder_push(&b->memory, &table->list, item) ? table->list.nr - 1 : 0;
}

/*
 * Finds the number of a key. If there is none yet, @is_new is set, and the key gets the number of
 * the element that is pushed next.
 */
static int32_t number_of(struct otlp_builder *b, struct otlp_table *table, const void *key,
			 size_t size, bool *is_new)
{
	struct number *found;

	*is_new = false;
	HASH_FIND(hh, table->numbers, key, size, found);
	if (found)
		return found->id;
	found = shstk_builder_alloc(&b->memory, sizeof(*found) + size);
	if (!found)
		return 0;
	found->id = table->list.nr;
	memcpy(found->key, key, size);
	HASH_ADD_KEYPTR(hh, table->numbers, found->key, size, found);
	*is_new = found->hh.tbl != NULL;
	b->memory.failed |= !*is_new;
	return found->id;
}

/* Returns the number of a string, which is of the store's pool: equal ones are the same pointer. */
static int32_t text_number(struct otlp_builder *b, const char *text)
{
	bool is_new;
	int32_t id;

	if (!text || !*text)
		return 0;
	id = number_of(b, &b->texts, &text, sizeof(text), &is_new);
	if (is_new)
		push(b, &b->texts, (void *)text);
	return id;
}

static const char *pool_text(struct otlp_builder *b, const char *text)
{
	const char *ret = shstk_pool_text(b->profile->text, text, strlen(text));

	b->memory.failed |= !ret;
	return ret;
}

/* ---- Attributes ---- */

/* Returns a value: a text, or a number, or with @is_bool whether it is other than 0. */
static AnyValue *make_value(struct otlp_builder *b, const char *text, int64_t n, bool is_bool)
{
	AnyValue *value = SHSTK_BUILDER_NEW(&b->memory, AnyValue, shstk__otlp__any_value__init);

	if (!value)
		return NULL;
	if (text) {
		value->value_case = SHSTK__OTLP__ANY_VALUE__VALUE_STRING_VALUE;
		value->string_value = (char *)text;
	} else if (is_bool) {
		value->value_case = SHSTK__OTLP__ANY_VALUE__VALUE_BOOL_VALUE;
		value->bool_value = n;
	} else {
		value->value_case = SHSTK__OTLP__ANY_VALUE__VALUE_INT_VALUE;
		value->int_value = n;
	}
	return value;
}

static int32_t attribute(struct otlp_builder *b, const char *key, const char *text, int64_t n,
			 bool is_bool)
{
	const struct {
		const char *key, *text;
		int64_t n;
	} search = { pool_text(b, key), text, n };
	Attribute *new;
	bool is_new;
	int32_t id = number_of(b, &b->attributes, &search, sizeof(search), &is_new);

	if (!is_new)
		return id;
	new = SHSTK_BUILDER_NEW(&b->memory, Attribute, shstk__otlp__key_value_and_unit__init);
	push(b, &b->attributes, new);
	if (!new)
		return 0;
	new->key_strindex = text_number(b, search.key);
	new->value = make_value(b, text, n, is_bool);
	return id;
}

static int32_t text_attribute(struct otlp_builder *b, const char *key, const char *text)
{
	return attribute(b, key, pool_text(b, text), 0, false);
}

static int32_t int_attribute(struct otlp_builder *b, const char *key, int64_t n)
{
	return attribute(b, key, NULL, n, false);
}

static int32_t true_attribute(struct otlp_builder *b, const char *key)
{
	return attribute(b, key, NULL, 1, true);
}

/* A list of attributes of one thing. */
struct list {
	size_t nr;
	int32_t v[MOST_ATTRIBUTES];
};

static void add(struct list *list, int32_t attribute)
{
	list->v[list->nr++] = attribute;
}

static int32_t *copy_list(struct otlp_builder *b, const struct list *list, size_t more)
{
	int32_t *ret = shstk_builder_alloc(&b->memory, (list->nr + more + 1) * sizeof(*ret));

	if (ret)
		memcpy(ret, list->v, list->nr * sizeof(*ret));
	return ret;
}

/* ---- Mappings ---- */

/* Returns whether this is the mapping of the command's program, maybe in a child of it. */
static bool is_main(const struct otlp_builder *b, const struct shstk_symmap *map)
{
	const struct shstk_symmap *main = b->main;

	return main && map->path == main->path && map->start == main->start &&
	       map->end == main->end && map->offset == main->offset;
}

static Mapping *make_mapping(struct otlp_builder *b, const struct shstk_symmap *map)
{
	Mapping *new = SHSTK_BUILDER_NEW(&b->memory, Mapping, shstk__otlp__mapping__init);
	struct list list = { 0 };
	const char *build_id, *hash = NULL;

	if (!new)
		return NULL;
	if (map->kind < SHSTK_SYMMAP_NONE) {
		shstk_symmap_build_id(b->profile->symbols, map);
		shstk_symmap_htlhash(map);
	}
	build_id = shstk_builder_build_id(&b->memory, map);
	if (map->htlhash)
		hash = shstk_builder_hex(&b->memory, map->htlhash, SHSTK_HTLHASH);
	new->memory_start = map->start;
	new->memory_limit = map->end;
	new->file_offset = map->offset;
	new->filename_strindex = text_number(b, *map->path ? map->path : map->name);
	if (build_id && *build_id)
		add(&list, text_attribute(b, SHSTK_OTLP_BUILD_ID, build_id));
	if (hash)
		add(&list, text_attribute(b, SHSTK_OTLP_HTLHASH, hash));
	add(&list, int_attribute(b, SHSTK_OTLP_KIND, map->kind));
	if (is_main(b, map))
		add(&list, true_attribute(b, SHSTK_OTLP_MAIN));
	new->n_attribute_indices = list.nr;
	new->attribute_indices = copy_list(b, &list, 0);
	return new;
}

/* Returns the number of a mapping; 0 where none is known. */
static int32_t mapping_number(struct otlp_builder *b, const struct shstk_symmap *map)
{
	const struct {
		const char *path, *name;
		uint64_t start, end, offset;
	} search = { map->path, map->name, map->start, map->end, map->offset };
	bool is_new;
	int32_t id;

	/* That of the kernel is of no kind, but has a name, and so has that of a language. */
	if (map->kind >= SHSTK_SYMMAP_NONE && map->kind != SHSTK_SYMMAP_LANGUAGE && !*map->path)
		return 0;
	id = number_of(b, &b->mappings, &search, sizeof(search), &is_new);
	if (is_new)
		push(b, &b->mappings, make_mapping(b, map));
	return id;
}

/* ---- Functions and locations ---- */

static int32_t function_number(struct otlp_builder *b, const struct shstk_symframe *frame)
{
	const struct {
		const char *name, *linkage, *file;
		uint64_t line;
	} search = { frame->function, frame->linkage, frame->file, frame->start_line };
	Function *new;
	bool is_new;
	int32_t id = number_of(b, &b->functions, &search, sizeof(search), &is_new);

	if (!is_new)
		return id;
	new = SHSTK_BUILDER_NEW(&b->memory, Function, shstk__otlp__function__init);
	push(b, &b->functions, new);
	if (!new)
		return 0;
	new->name_strindex = text_number(b, frame->function);
	new->system_name_strindex = text_number(b, frame->linkage);
	new->filename_strindex = text_number(b, frame->file);
	new->start_line = frame->start_line;
	return id;
}

static Line *make_line(struct otlp_builder *b, const struct shstk_symframe *frame)
{
	Line *new = SHSTK_BUILDER_NEW(&b->memory, Line, shstk__otlp__line__init);

	if (new) {
		new->function_index = function_number(b, frame);
		new->line = frame->line;
	}
	return new;
}

static void add_lines(struct otlp_builder *b, Location *to, const struct shstk_symbol *symbol)
{
	to->lines = shstk_builder_alloc(&b->memory, symbol->nr * sizeof(*to->lines));
	while (to->lines && to->n_lines < symbol->nr && !b->memory.failed) {
		to->lines[to->n_lines] = make_line(b, symbol->frames + to->n_lines);
		to->n_lines++;
	}
}

/*
 * Returns whether the functions of a location are looked up now: those that are in no file are not
 * there any more when someone reads this.
 */
static bool name_now(const struct otlp_builder *b, const struct shstk_location *from)
{
	return b->message->named || from->symbol || from->generated || from->pc >> 63 ||
	       from->map->kind == SHSTK_SYMMAP_VDSO || from->map->kind > SHSTK_SYMMAP_NONE;
}

static Location *make_location(struct otlp_builder *b, const struct shstk_location *from)
{
	Location *new = SHSTK_BUILDER_NEW(&b->memory, Location, shstk__otlp__location__init);
	const struct shstk_symbol *symbol;
	struct list list = { 0 };

	if (!new)
		return NULL;
	/* The address must lie inside the call instruction, not behind it. */
	new->address = from->pc;
	if (from->how == SHSTK_SYMADDR_RETURN && from->pc) {
		new->address--;
		add(&list, true_attribute(b, SHSTK_OTLP_RETURN));
	}
	if (from->guessed)
		add(&list, true_attribute(b, SHSTK_OTLP_GUESSED));
	new->mapping_index = mapping_number(b, from->map);
	add(&list, int_attribute(b, SHSTK_OTLP_LOCATION, from->id));
	if (name_now(b, from)) {
		symbol = shstk_location_symbol(b->profile, from);
		add(&list, text_attribute(b, SHSTK_OTLP_LANGUAGE,
					  shstk_language_frame_type(
						  shstk_language_of(from, symbol->frames))));
		add_lines(b, new, symbol);
		if (!symbol->resolved)
			add(&list, true_attribute(b, SHSTK_OTLP_UNRESOLVED));
		if (symbol->start)
			add(&list, int_attribute(b, SHSTK_OTLP_FUNCTION, symbol->start));
	}
	new->n_attribute_indices = list.nr;
	new->attribute_indices = copy_list(b, &list, 0);
	return new;
}

static int32_t location_number(struct otlp_builder *b, uint32_t i)
{
	bool is_new;
	int32_t id = number_of(b, &b->locations, &i, sizeof(i), &is_new);

	if (is_new)
		push(b, &b->locations, make_location(b, b->profile->locations[i]));
	return id;
}

/* Returns the number of the location without an address that stands for a note. */
static int32_t note_number(struct otlp_builder *b, int note)
{
	const uint64_t key = (uint64_t)note;
	struct shstk_symframe frame = { 0 };
	Location *new;
	bool is_new;
	int32_t id = number_of(b, &b->locations, &key, sizeof(key), &is_new);

	if (!is_new)
		return id;
	new = SHSTK_BUILDER_NEW(&b->memory, Location, shstk__otlp__location__init);
	push(b, &b->locations, new);
	if (!new)
		return 0;
	frame.function = frame.linkage = pool_text(b, shstk_note_name(note));
	new->lines = shstk_builder_alloc(&b->memory, sizeof(*new->lines));
	if (new->lines) {
		new->n_lines = 1;
		new->lines[0] = make_line(b, &frame);
	}
	return id;
}

/* ---- Samples ---- */

static Stack *make_stack(struct otlp_builder *b, const struct shstk_record *record)
{
	Stack *new = SHSTK_BUILDER_NEW(&b->memory, Stack, shstk__otlp__stack__init);

	if (!new)
		return NULL;
	new->location_indices =
		shstk_builder_alloc(&b->memory, (record->nr + 1) * sizeof(*new->location_indices));
	if (!new->location_indices)
		return NULL;
	for (uint64_t i = 0; i < record->nr && !b->memory.failed; i++)
		new->location_indices[new->n_location_indices++] =
			location_number(b, record->locations[i]);
	if (record->note)
		new->location_indices[new->n_location_indices++] = note_number(b, record->note);
	return new;
}

/* The members of a record from @note on are what tells one stack from another. */
static int32_t stack_number(struct otlp_builder *b, const struct shstk_record *record)
{
	const size_t size = offsetof(struct shstk_record, locations) -
			    offsetof(struct shstk_record, note) +
			    record->nr * sizeof(record->locations[0]);
	bool is_new;
	int32_t id = number_of(b, &b->stacks, &record->note, size, &is_new);

	if (is_new)
		push(b, &b->stacks, make_stack(b, record));
	return id;
}

/* Reads an id that is written in hexadecimal digits. Returns whether it is one, and not 0. */
static bool read_id(const char *text, uint8_t *id, size_t size)
{
	uint8_t any = 0;

	if (!text || strlen(text) != 2 * size)
		return false;
	for (size_t i = 0; i < size; i++) {
		int high = shstk_hex_digit(text[2 * i]), low = shstk_hex_digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		id[i] = high << 4 | low;
		any |= id[i];
	}
	return any;
}

/* Returns the number of the span that the labels of a record tell; 0: they tell none. */
static int32_t link_number(struct otlp_builder *b, const struct shstk_record *record)
{
	struct {
		uint8_t trace[SHSTK_OTLP_TRACE_ID];
		uint8_t span[SHSTK_OTLP_SPAN_ID];
	} ids, *copy;
	bool is_new;
	int32_t id;
	Link *new;

	if (!record->labels ||
	    !read_id(shstk_record_label(record, SHSTK_OTLP_TRACE), ids.trace, sizeof(ids.trace)) ||
	    !read_id(shstk_record_label(record, SHSTK_OTLP_SPAN), ids.span, sizeof(ids.span)))
		return 0;
	id = number_of(b, &b->links, &ids, sizeof(ids), &is_new);
	if (!is_new)
		return id;
	new = SHSTK_BUILDER_NEW(&b->memory, Link, shstk__otlp__link__init);
	copy = shstk_builder_alloc(&b->memory, sizeof(*copy));
	push(b, &b->links, new);
	if (!new || !copy)
		return 0;
	*copy = ids;
	new->trace_id = (ProtobufCBinaryData){ sizeof(copy->trace), copy->trace };
	new->span_id = (ProtobufCBinaryData){ sizeof(copy->span), copy->span };
	return id;
}

/* Returns whether a label is told by the link. */
static bool is_linked(const struct shared *shared, const char *key)
{
	return shared->link && (!strcmp(key, SHSTK_OTLP_TRACE) || !strcmp(key, SHSTK_OTLP_SPAN));
}

/* Lists the attributes of a record's samples, with room for the CPU's. */
static void add_attributes(struct otlp_builder *b, const struct shstk_record *record,
			   struct shared *to)
{
	const struct shstk_labels *labels = record->labels;
	size_t nr = labels ? labels->nr : 0;
	struct list list = { 0 };

	if (shstk_symproc_pid(record->proc) >= 0)
		add(&list, int_attribute(b, SHSTK_OTLP_PID, shstk_symproc_pid(record->proc)));
	if (record->tid >= 0)
		add(&list, int_attribute(b, SHSTK_OTLP_TID, record->tid));
	if (*record->comm)
		add(&list, text_attribute(b, SHSTK_OTLP_THREAD, record->comm));
	to->attributes = copy_list(b, &list, nr / 2 + 1);
	to->nr = list.nr;
	to->link = link_number(b, record);
	for (size_t i = 0; to->attributes && i < nr; i += 2)
		if (!is_linked(to, labels->text[i]))
			to->attributes[to->nr++] = text_attribute(
				b, shstk_otlp_from_label(labels->text[i]), labels->text[i + 1]);
}

static struct shared *get_shared(struct otlp_builder *b, const struct shstk_record *record)
{
	struct shared *found;

	HASH_FIND_PTR(b->records, &record, found);
	if (found)
		return found;
	found = shstk_builder_alloc(&b->memory, sizeof(*found));
	if (!found)
		return NULL;
	found->record = record;
	found->stack = stack_number(b, record);
	add_attributes(b, record, found);
	HASH_ADD_PTR(b->records, record, found);
	b->memory.failed |= !found->hh.tbl;
	return found;
}

/* Returns the attributes of a sample: those of its record and its CPU. */
static int32_t *sample_attributes(struct otlp_builder *b, const struct shared *shared, int32_t cpu)
{
	int32_t *ret = shared->attributes;

	if (cpu < 0)
		return ret;
	ret = shstk_builder_alloc(&b->memory, (shared->nr + 1) * sizeof(*ret));
	if (!ret)
		return NULL;
	if (shared->nr)
		memcpy(ret, shared->attributes, shared->nr * sizeof(*ret));
	ret[shared->nr] = int_attribute(b, SHSTK_OTLP_CPU, cpu);
	return ret;
}

/* Returns what is added to times of samples to get ns since 1970. */
static int64_t clock_of(const struct shstk_profile *profile)
{
	return (uint64_t)profile->start - profile->origin;
}

static struct otlp_group *group_of(struct otlp_builder *b, const struct shstk_record *record);

/* Adds a sample to the Profile of each kind of values. */
static void add_sample(struct otlp_builder *b, const struct shstk_otlp_sample *from)
{
	struct otlp_group *group = group_of(b, from->record);
	const struct shared *shared = get_shared(b, from->record);
	uint64_t *time = from->time ? shstk_builder_alloc(&b->memory, sizeof(*time)) : NULL;
	int32_t *attributes;

	if (b->memory.failed)
		return;
	attributes = sample_attributes(b, shared, from->cpu);
	if (time)
		*time = from->time + clock_of(b->profile);
	for (unsigned int t = 0; t < b->profile->nr_types; t++) {
		Sample *new = SHSTK_BUILDER_NEW(&b->memory, Sample, shstk__otlp__sample__init);

		if (!new)
			return;
		new->stack_index = shared->stack;
		new->link_index = shared->link;
		new->n_attribute_indices = shared->nr + (from->cpu >= 0);
		new->attribute_indices = attributes;
		new->n_values = 1;
		new->values = (int64_t *)&from->values[t];
		new->n_timestamps_unix_nano = time != NULL;
		new->timestamps_unix_nano = time;
		shstk_builder_push(&b->memory, &group->samples[t], new);
	}
}

static void add_samples(struct otlp_builder *b)
{
	const struct shstk_otlp_message *m = b->message;
	const size_t size = shstk_otlp_sample_size(b->profile->nr_types);

	for (size_t i = 0; i < m->nr && !b->memory.failed; i++)
		add_sample(b, (const struct shstk_otlp_sample *)(m->samples + i * size));
	for (size_t i = 0; i < m->nr_names && !b->memory.failed; i++)
		location_number(b, m->first_name + i);
}

/* ---- Profiles ---- */

static ValueType *make_type(struct otlp_builder *b, const struct shstk_value_type *from)
{
	ValueType *new = SHSTK_BUILDER_NEW(&b->memory, ValueType, shstk__otlp__value_type__init);

	if (new) {
		new->type_strindex = text_number(b, from->type);
		new->unit_strindex = text_number(b, from->unit);
	}
	return new;
}

/* Gives a Profile its id. */
static void add_id(struct otlp_builder *b, Profile *to, uint32_t group, unsigned int type)
{
	uint8_t *id = shstk_builder_alloc(&b->memory, SHSTK_OTLP_ID);

	if (!id)
		return;
	memcpy(id, b->message->id, SHSTK_OTLP_ID);
	id[SHSTK_OTLP_ID - 4] = group >> 16;
	id[SHSTK_OTLP_ID - 3] = group >> 8;
	id[SHSTK_OTLP_ID - 2] = group;
	id[SHSTK_OTLP_ID - 1] = type;
	to->profile_id = (ProtobufCBinaryData){ SHSTK_OTLP_ID, id };
}

static Profile *make_profile(struct otlp_builder *b, uint32_t group, unsigned int type)
{
	const struct shstk_profile *profile = b->profile;
	const struct shstk_write_opts opts = { .type = b->message->about->type };
	const char *note = profile->types[type].note;
	Profile *new = SHSTK_BUILDER_NEW(&b->memory, Profile, shstk__otlp__profile__init);
	struct list list = { 0 };

	if (!new)
		return NULL;
	new->sample_type = make_type(b, &profile->types[type]);
	if (profile->period_type.type)
		new->period_type = make_type(b, &profile->period_type);
	new->period = profile->period;
	new->time_unix_nano = profile->start;
	new->duration_nano = profile->duration;
	if (b->message->id)
		add_id(b, new, group, type);
	if (shstk_shown_type(profile, &opts) == type)
		add(&list, true_attribute(b, SHSTK_OTLP_DEFAULT));
	if (note)
		add(&list, text_attribute(b, SHSTK_OTLP_NOTE, note));
	new->n_attribute_indices = list.nr;
	new->attribute_indices = copy_list(b, &list, 0);
	return new;
}

/* ---- What a message says of the recording ---- */

static void add_pair(struct otlp_builder *b, KeyValue **list, size_t *nr, const char *key,
		     AnyValue *value)
{
	KeyValue *new = SHSTK_BUILDER_NEW(&b->memory, KeyValue, shstk__otlp__key_value__init);

	if (!new || !value)
		return;
	new->key = (char *)key;
	new->value = value;
	list[(*nr)++] = new;
}

static AnyValue *make_texts(struct otlp_builder *b, const char *const *lines, size_t nr)
{
	AnyValue *value = SHSTK_BUILDER_NEW(&b->memory, AnyValue, shstk__otlp__any_value__init);
	Shstk__Otlp__TextList *list =
		SHSTK_BUILDER_NEW(&b->memory, Shstk__Otlp__TextList, shstk__otlp__text_list__init);

	if (!value || !list)
		return NULL;
	value->value_case = SHSTK__OTLP__ANY_VALUE__VALUE_ARRAY_VALUE;
	value->array_value = list;
	list->values = shstk_builder_alloc(&b->memory, (nr + 1) * sizeof(*list->values));
	for (size_t i = 0; i < nr && !b->memory.failed; i++) {
		list->values[i] =
			SHSTK_BUILDER_NEW(&b->memory, Shstk__Otlp__Text, shstk__otlp__text__init);
		if (list->values[i])
			list->values[list->n_values++]->string_value = (char *)lines[i];
	}
	return value;
}

/* Returns the lives of a message as lines. */
static AnyValue *make_lives(struct otlp_builder *b)
{
	const struct shstk_otlp_message *m = b->message;
	const char **lines = shstk_builder_alloc(&b->memory, (m->nr_lives + 1) * sizeof(*lines));
	char text[SHSTK_LIFE_TEXT];

	for (size_t i = 0; lines && i < m->nr_lives && !b->memory.failed; i++) {
		shstk_life_format(&b->profile->lives[m->first_life + i], clock_of(b->profile),
				  text);
		lines[i] = pool_text(b, text);
	}
	return b->memory.failed ? NULL : make_texts(b, lines, m->nr_lives);
}

static const char *title_of(const struct otlp_builder *b)
{
	return b->message->about->title ? b->message->about->title : b->profile->title;
}

static Shstk__Otlp__Scope *make_scope(struct otlp_builder *b)
{
	const struct shstk_otlp_message *m = b->message;
	const struct shstk_profile *profile = b->profile;
	Shstk__Otlp__Scope *scope =
		SHSTK_BUILDER_NEW(&b->memory, Shstk__Otlp__Scope, shstk__otlp__scope__init);
	KeyValue **list = shstk_builder_alloc(&b->memory, 9 * sizeof(*list));
	size_t nr = 0;

	if (!scope || !list)
		return NULL;
	scope->name = "shstk";
	scope->version = SHSTK_VERSION;
	if (title_of(b))
		add_pair(b, list, &nr, SHSTK_OTLP_TITLE,
			 make_value(b, pool_text(b, title_of(b)), 0, false));
	add_pair(b, list, &nr, SHSTK_OTLP_CLOCK, make_value(b, NULL, clock_of(profile), false));
	if (m->so_far)
		add_pair(b, list, &nr, SHSTK_OTLP_SO_FAR, make_value(b, m->so_far, 0, false));
	if (m->nr_lives)
		add_pair(b, list, &nr, SHSTK_OTLP_LIVES, make_lives(b));
	if (m->end) {
		add_pair(b, list, &nr, SHSTK_OTLP_END, make_value(b, NULL, 1, true));
		add_pair(b, list, &nr, SHSTK_OTLP_NAMES, make_value(b, NULL, m->names_at, false));
		add_pair(b, list, &nr, SHSTK_OTLP_COMMENTS,
			 make_texts(b, profile->comments, profile->nr_comments));
		add_pair(b, list, &nr, SHSTK_OTLP_CAUTIONS,
			 make_texts(b, profile->cautions, profile->nr_cautions));
	}
	scope->attributes = list;
	scope->n_attributes = nr;
	return scope;
}

/* Adds an attribute to those of the resource, unless the caller gives it. */
static void add_own(struct otlp_builder *b, KeyValue **list, size_t *nr, const char *key,
		    const char *text)
{
	const struct shstk_otlp_about *about = b->message->about;

	for (size_t i = 0; i < about->nr_resource; i += 2)
		if (!strcmp(about->resource[i], key))
			return;
	add_pair(b, list, nr, key, make_value(b, pool_text(b, text), 0, false));
}

/* Returns a label of the first record of a resource, or NULL. @first is NULL without samples. */
static const char *label_of(const struct shstk_record *first, const char *key)
{
	return first ? shstk_record_label(first, key) : NULL;
}

/* Returns the name of the command that was recorded, which is the service then; NULL: there is none. */
static const char *command_of(const struct otlp_builder *b)
{
	const char *title = title_of(b), *slash = title ? strrchr(title, '/') : NULL;

	if (!title || !strcmp(title, SHSTK_TITLE_NO_COMMAND))
		return NULL;
	return slash && slash[1] ? slash + 1 : title;
}

/* Says of which process the samples are, and of which service. */
static void add_process(struct otlp_builder *b, KeyValue **list, size_t *nr,
			const struct shstk_record *first)
{
	const char *cgroup = label_of(first, "cgroup"), *name = label_of(first, "process");
	const char *container = label_of(first, "container"), *service = command_of(b);
	char unit[SHSTK_RESOURCE_TEXT], pod[SHSTK_RESOURCE_TEXT];

	if (!service && cgroup && (!container || shstk_resource_is_split(cgroup)) &&
	    shstk_resource_unit(cgroup, unit))
		service = unit;
	/* Of a process that ended soon only the names of its threads are known. */
	if (!name && first && *first->comm)
		name = first->comm;
	add_own(b, list, nr, "service.name", service ? service : name ? name : "unknown_service");
	if (first && shstk_symproc_pid(first->proc) >= 0)
		add_pair(b, list, nr, SHSTK_OTLP_PID,
			 make_value(b, NULL, shstk_symproc_pid(first->proc), false));
	if (name)
		add_own(b, list, nr, "process.executable.name", name);
	if (container)
		add_own(b, list, nr, "container.id", container);
	if (cgroup && shstk_resource_pod(cgroup, pod))
		add_own(b, list, nr, "k8s.pod.uid", pod);
}

/* Says on which machine the samples were taken. */
static void add_machine(struct otlp_builder *b, KeyValue **list, size_t *nr)
{
	struct utsname *host = shstk_builder_alloc(&b->memory, sizeof(*host));
	char id[SHSTK_MACHINE_ID];

	if (!host || uname(host))
		return;
	if (b->message->id && shstk_resource_machine(id))
		add_own(b, list, nr, "host.id", id);
	add_own(b, list, nr, "host.name", host->nodename);
	add_own(b, list, nr, "host.arch", host->machine);
	add_own(b, list, nr, "os.type", "linux");
	add_own(b, list, nr, "os.version", host->release);
}

/* Says on which machine the samples were taken, and of what. */
static Shstk__Otlp__Resource *make_resource(struct otlp_builder *b,
					    const struct shstk_record *first)
{
	Shstk__Otlp__Resource *resource =
		SHSTK_BUILDER_NEW(&b->memory, Shstk__Otlp__Resource, shstk__otlp__resource__init);
	const struct shstk_otlp_about *about = b->message->about;
	KeyValue **list = shstk_builder_alloc(&b->memory, (about->nr_resource / 2 + MOST_RESOURCE) *
								  sizeof(*list));
	size_t nr = 0;

	if (!resource || !list)
		return resource;
	if (b->message->id)
		add_process(b, list, &nr, first);
	else
		add_own(b, list, &nr, "service.name", title_of(b) ? title_of(b) : "shstk");
	add_machine(b, list, &nr);
	for (size_t i = 0; i < about->nr_resource; i += 2)
		add_pair(b, list, &nr, about->resource[i],
			 make_value(b, about->resource[i + 1], 0, false));
	resource->attributes = list;
	resource->n_attributes = nr;
	return resource;
}

/* ---- Groups ---- */

/* Makes what the message says once for each resource. Returns false when memory runs out. */
static bool fill_group(struct otlp_builder *b, struct otlp_group *group)
{
	struct {
		Shstk__Otlp__ScopeProfiles *scope;
	} *list = shstk_builder_alloc(&b->memory, sizeof(*list));
	Shstk__Otlp__ResourceProfiles *resource = SHSTK_BUILDER_NEW(
		&b->memory, Shstk__Otlp__ResourceProfiles, shstk__otlp__resource_profiles__init);
	Shstk__Otlp__ScopeProfiles *scope = SHSTK_BUILDER_NEW(
		&b->memory, Shstk__Otlp__ScopeProfiles, shstk__otlp__scope_profiles__init);

	for (unsigned int t = 0; t < b->profile->nr_types; t++)
		group->profiles[t] = make_profile(b, group->number, t);
	if (b->memory.failed)
		return false;
	scope->scope = make_scope(b);
	scope->profiles = group->profiles;
	scope->n_profiles = b->profile->nr_types;
	list->scope = scope;
	resource->resource = make_resource(b, group->first);
	resource->scope_profiles = &list->scope;
	resource->n_scope_profiles = 1;
	return shstk_builder_push(&b->memory, &b->resources, resource) && !b->memory.failed;
}

/* Returns the group of a record's samples, or NULL when memory runs out. */
static struct otlp_group *group_of(struct otlp_builder *b, const struct shstk_record *record)
{
	const struct shstk_symproc *key = b->message->id && record ? record->proc : NULL;
	struct otlp_group *group;

	HASH_FIND_PTR(b->groups, &key, group);
	if (group)
		return group;
	group = shstk_builder_alloc(&b->memory, sizeof(*group));
	if (!group)
		return NULL;
	group->key = key;
	group->first = b->message->id ? record : NULL;
	group->number = b->resources.nr;
	if (!fill_group(b, group))
		return NULL;
	HASH_ADD_PTR(b->groups, key, group);
	b->memory.failed |= !group->hh.tbl;
	return b->memory.failed ? NULL : group;
}

/* Gives the Profiles their samples, when these are complete. */
static void finish_groups(struct otlp_builder *b)
{
	for (struct otlp_group *group = b->groups; group; group = group->hh.next)
		for (unsigned int t = 0; t < b->profile->nr_types; t++) {
			group->profiles[t]->n_samples = group->samples[t].nr;
			group->profiles[t]->samples = (Sample **)group->samples[t].v;
		}
}

/* Returns the link that means that there is none: its ids are there, and 0. */
static Link *make_no_link(struct otlp_builder *b)
{
	static const uint8_t zeros[SHSTK_OTLP_TRACE_ID];
	Link *new = SHSTK_BUILDER_NEW(&b->memory, Link, shstk__otlp__link__init);

	if (!new)
		return NULL;
	new->trace_id = (ProtobufCBinaryData){ SHSTK_OTLP_TRACE_ID, (uint8_t *)zeros };
	new->span_id = (ProtobufCBinaryData){ SHSTK_OTLP_SPAN_ID, (uint8_t *)zeros };
	return new;
}

/* Puts the empty first element into each table. */
static void begin_tables(struct otlp_builder *b)
{
	push(b, &b->links, make_no_link(b));
	push(b, &b->texts, "");
	push(b, &b->attributes,
	     SHSTK_BUILDER_NEW(&b->memory, Attribute, shstk__otlp__key_value_and_unit__init));
	push(b, &b->mappings, SHSTK_BUILDER_NEW(&b->memory, Mapping, shstk__otlp__mapping__init));
	push(b, &b->functions,
	     SHSTK_BUILDER_NEW(&b->memory, Function, shstk__otlp__function__init));
	push(b, &b->locations,
	     SHSTK_BUILDER_NEW(&b->memory, Location, shstk__otlp__location__init));
	push(b, &b->stacks, SHSTK_BUILDER_NEW(&b->memory, Stack, shstk__otlp__stack__init));
}

static Shstk__Otlp__Dictionary *make_dictionary(struct otlp_builder *b)
{
	Shstk__Otlp__Dictionary *to = SHSTK_BUILDER_NEW(&b->memory, Shstk__Otlp__Dictionary,
							shstk__otlp__dictionary__init);

	if (!to)
		return NULL;
	to->n_link_table = b->links.list.nr;
	to->link_table = (Link **)b->links.list.v;
	to->n_string_table = b->texts.list.nr;
	to->string_table = (char **)b->texts.list.v;
	to->n_attribute_table = b->attributes.list.nr;
	to->attribute_table = (Attribute **)b->attributes.list.v;
	to->n_mapping_table = b->mappings.list.nr;
	to->mapping_table = (Mapping **)b->mappings.list.v;
	to->n_function_table = b->functions.list.nr;
	to->function_table = (Function **)b->functions.list.v;
	to->n_location_table = b->locations.list.nr;
	to->location_table = (Location **)b->locations.list.v;
	to->n_stack_table = b->stacks.list.nr;
	to->stack_table = (Stack **)b->stacks.list.v;
	return to;
}

/* Builds the message. NULL when memory runs out. */
static Shstk__Otlp__ProfilesData *build(struct otlp_builder *b)
{
	Shstk__Otlp__ProfilesData *out = SHSTK_BUILDER_NEW(&b->memory, Shstk__Otlp__ProfilesData,
							   shstk__otlp__profiles_data__init);

	begin_tables(b);
	if (b->memory.failed)
		return NULL;
	/* A message without samples has a resource, too; only in one with ids that is a process. */
	if (!b->message->id || !b->message->nr)
		group_of(b, NULL);
	if (!b->memory.failed)
		add_samples(b);
	if (b->memory.failed)
		return NULL;
	finish_groups(b);
	out->resource_profiles = (Shstk__Otlp__ResourceProfiles **)b->resources.v;
	out->n_resource_profiles = b->resources.nr;
	out->dictionary = make_dictionary(b);
	return b->memory.failed ? NULL : out;
}

static void table_deinit(struct otlp_table *table)
{
	HASH_CLEAR(hh, table->numbers);
	free(table->list.v);
}

static void builder_deinit(struct otlp_builder *b)
{
	for (struct otlp_group *group = b->groups; group; group = group->hh.next)
		for (unsigned int t = 0; t < SHSTK_PROFILE_MAX_TYPES; t++)
			free(group->samples[t].v);
	HASH_CLEAR(hh, b->groups);
	free(b->resources.v);
	HASH_CLEAR(hh, b->records);
	table_deinit(&b->texts);
	table_deinit(&b->attributes);
	table_deinit(&b->mappings);
	table_deinit(&b->functions);
	table_deinit(&b->locations);
	table_deinit(&b->stacks);
	table_deinit(&b->links);
	shstk_pool_deinit(&b->memory.pool);
}

int shstk_otlp_pack(const struct shstk_otlp_message *message, uint8_t **ret, size_t *size)
{
	struct otlp_builder b = { .message = message, .profile = message->profile };
	Shstk__Otlp__ProfilesData *out;

	*ret = NULL;
	b.main = shstk_profile_main_map(message->profile);
	shstk_pool_init(&b.memory.pool);
	out = build(&b);
	if (out) {
		*size = shstk__otlp__profiles_data__get_packed_size(out);
		*ret = malloc(*size + 1);
	}
	if (*ret && shstk__otlp__profiles_data__pack(out, *ret) != *size) {
		free(*ret);
		*ret = NULL;
	}
	builder_deinit(&b);
	return *ret ? 0 : -ENOMEM;
}
