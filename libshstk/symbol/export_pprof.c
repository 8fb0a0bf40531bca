// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * export_pprof.c - pprof's format: profile.proto, compressed by gzip.
 *
 * The message tree is built in one pool and packed straight into the compressor. Tables give
 * functions, mappings and strings their numbers; the key of a table is what makes two of them the
 * same.
 *
 * An address has several functions where calls were inlined. The format can hold them as several
 * lines of one location, but speedscope keeps only the last line of a location, so that all inlined
 * functions, and with them the hottest one, would be missing there. Therefore each of them gets a
 * location of its own, with the same address and successive IDs, innermost first. By these
 * import_pprof.c knows that they are one entry of a stack. Two entries with the same address never
 * have successive IDs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "builder.h"
#include "export.h"
#include "profile.pb-c.h"

/*
 * Compression level of zlib. The default, 6, took 2.3 times as long for 3 % less (a profile of cc1,
 * 757 KB: 19.3 and 8.4 ms, 197 and 204 KB), which was a fifth of the time of the whole recording.
 */
#define LEVEL 4

typedef Shstk__Pprof__Profile Profile;
typedef Shstk__Pprof__ValueType ValueType;
typedef Shstk__Pprof__Sample Sample;
typedef Shstk__Pprof__Label Label;
typedef Shstk__Pprof__Mapping Mapping;
typedef Shstk__Pprof__Location Location;
typedef Shstk__Pprof__Line Line;
typedef Shstk__Pprof__Function Function;

/* The index of a string in the string table. */
struct text_id {
	UT_hash_handle hh;
	const char *text; /* key */
	int64_t id;
};

struct function_id {
	UT_hash_handle hh;
	struct {
		const char *name;
		const char *linkage;
		const char *file;
		uint64_t start_line;
	} key;
	uint64_t id;
};

struct mapping_id {
	UT_hash_handle hh;
	struct {
		const char *path;
		uint64_t start;
		uint64_t end;
		uint64_t offset;
	} key;
	const struct shstk_symmap *map;
	Mapping *mapping;
	bool main;
};

/* The locations that one location of the profile becomes. */
struct location_ids {
	uint64_t id; /* of the first one; the others have the numbers after it */
	unsigned int nr;
};

/**
 * struct pprof_builder - a Profile being built
 * @profile: the profile that is written.
 * @memory: memory of the messages.
 * @texts: numbers of strings.
 * @functions: numbers of functions.
 * @mappings: numbers of mappings.
 * @text_list: strings by number.
 * @function_list: functions by number.
 * @places: where the functions of each location of the profile are in @out.location.
 * @next_id: ID of the next location.
 * @out: the message.
 */
struct pprof_builder {
	const struct shstk_profile *profile;
	struct shstk_builder memory;
	struct text_id *texts;
	struct function_id *functions;
	struct mapping_id *mappings;
	struct shstk_message_items text_list;
	struct shstk_message_items function_list;
	struct location_ids *places;
	uint64_t next_id;
	Profile out;
};

/* Returns the number of a string. @text must be from the store's pool or live as long as @b. */
static int64_t text_number(struct pprof_builder *b, const char *text)
{
	struct text_id *entry;

	if (!text || !*text)
		return 0;
	HASH_FIND(hh, b->texts, &text, sizeof(text), entry);
	if (entry)
		return entry->id;
	entry = shstk_builder_alloc(&b->memory, sizeof(*entry));
	if (!entry || !shstk_builder_push(&b->memory, &b->text_list, (void *)text))
		return 0;
	entry->text = text;
	entry->id = b->text_list.nr - 1;
	HASH_ADD(hh, b->texts, text, sizeof(entry->text), entry);
	return entry->id;
}

static int64_t pool_text_number(struct pprof_builder *b, const char *text)
{
	return text_number(b, shstk_pool_text(b->profile->text, text, strlen(text)));
}

static uint64_t function_number(struct pprof_builder *b, const struct shstk_symframe *frame)
{
	struct function_id *entry, search = {};
	Function *function;

	search.key.name = frame->function;
	search.key.linkage = frame->linkage;
	search.key.file = frame->file;
	search.key.start_line = frame->start_line;
	HASH_FIND(hh, b->functions, &search.key, sizeof(search.key), entry);
	if (entry)
		return entry->id;
	entry = shstk_builder_alloc(&b->memory, sizeof(*entry));
	function = SHSTK_BUILDER_NEW(&b->memory, Function, shstk__pprof__function__init);
	if (!entry || !function || !shstk_builder_push(&b->memory, &b->function_list, function))
		return 0;
	entry->key = search.key;
	entry->id = b->function_list.nr;
	HASH_ADD(hh, b->functions, key, sizeof(entry->key), entry);
	function->id = entry->id;
	function->name = text_number(b, frame->function);
	function->system_name = text_number(b, frame->linkage);
	function->filename = text_number(b, frame->file);
	function->start_line = frame->start_line;
	return entry->id;
}

static struct mapping_id *find_mapping(struct pprof_builder *b, const struct shstk_symmap *map)
{
	struct mapping_id *entry, search = {};

	search.key.path = map->path;
	search.key.start = map->start;
	search.key.end = map->end;
	search.key.offset = map->offset;
	HASH_FIND(hh, b->mappings, &search.key, sizeof(search.key), entry);
	if (entry || map->kind >= SHSTK_SYMMAP_NONE)
		return entry;
	entry = shstk_builder_alloc(&b->memory, sizeof(*entry));
	if (!entry)
		return NULL;
	entry->key = search.key;
	entry->map = map;
	entry->mapping = SHSTK_BUILDER_NEW(&b->memory, Mapping, shstk__pprof__mapping__init);
	if (!entry->mapping)
		return NULL;
	HASH_ADD(hh, b->mappings, key, sizeof(entry->key), entry);
	return entry;
}

/*
 * Orders mappings: the command's program, files before memory, then by address. A program lies
 * below its libraries, and readers take the first mapping for the program.
 */
static int by_place(const struct mapping_id *a, const struct mapping_id *b)
{
	if (a->main != b->main)
		return a->main ? -1 : 1;
	if (a->map->kind != b->map->kind)
		return a->map->kind < b->map->kind ? -1 : 1;
	if (a->key.start != b->key.start)
		return a->key.start < b->key.start ? -1 : 1;
	return 0;
}

static int64_t build_id_number(struct pprof_builder *b, const struct shstk_symmap *map)
{
	char *hex = shstk_builder_build_id(&b->memory, map);

	return hex ? pool_text_number(b, hex) : 0;
}

/* Notes which mapping is that of the command's program. */
static void mark_main(struct pprof_builder *b)
{
	const struct shstk_symmap *map = shstk_profile_main_map(b->profile);
	struct mapping_id *entry = map ? find_mapping(b, map) : NULL;

	if (entry)
		entry->main = true;
}

static void build_mappings(struct pprof_builder *b)
{
	const struct shstk_profile *profile = b->profile;
	struct mapping_id *entry;
	size_t i;

	for (i = 0; i < profile->nr_locations; i++)
		find_mapping(b, profile->locations[i]->map);
	mark_main(b);
	HASH_SORT(b->mappings, by_place);
	b->out.mapping =
		shstk_builder_array(&b->memory, HASH_COUNT(b->mappings), sizeof(*b->out.mapping));
	for (entry = b->mappings; entry && !b->memory.failed; entry = entry->hh.next) {
		Mapping *mapping = entry->mapping;

		shstk_symmap_build_id(profile->symbols, entry->map);
		b->out.mapping[b->out.n_mapping++] = mapping;
		mapping->id = b->out.n_mapping;
		mapping->memory_start = entry->map->start;
		mapping->memory_limit = entry->map->end;
		mapping->file_offset = entry->map->offset;
		mapping->filename =
			text_number(b, *entry->map->path ? entry->map->path : entry->map->name);
		mapping->build_id = build_id_number(b, entry->map);
	}
}

static Line *build_line(struct pprof_builder *b, const struct shstk_symframe *frame)
{
	Line *line = SHSTK_BUILDER_NEW(&b->memory, Line, shstk__pprof__line__init);

	if (line) {
		line->function_id = function_number(b, frame);
		line->line = frame->line;
	}
	return line;
}

/*
 * Notes what is known about a mapping's addresses, which tells readers what they need not look up
 * again.
 */
static void note_knowledge(Mapping *mapping, const struct shstk_symbol *symbol)
{
	unsigned int i;

	mapping->has_functions |= symbol->resolved;
	for (i = 0; i < symbol->nr; i++) {
		mapping->has_filenames |= symbol->frames[i].file != NULL;
		mapping->has_line_numbers |= symbol->frames[i].line != 0;
		mapping->has_inline_frames |= symbol->frames[i].file != NULL;
	}
}

/*
 * Adds a location with the next ID and the functions of @nr frames. Returns NULL if memory ran out.
 */
static Location *add_location(struct pprof_builder *b, const struct shstk_symframe *frames,
			      unsigned int nr)
{
	Location *to = SHSTK_BUILDER_NEW(&b->memory, Location, shstk__pprof__location__init);

	if (!to)
		return NULL;
	to->id = b->next_id++;
	to->line = shstk_builder_array(&b->memory, nr, sizeof(*to->line));
	while (to->line && to->n_line < nr && !b->memory.failed) {
		to->line[to->n_line] = build_line(b, frames + to->n_line);
		to->n_line++;
	}
	b->out.location[b->out.n_location++] = to;
	return to;
}

/*
 * Returns whether the functions of a location get locations of their own. Without an address,
 * readers could not know that these belong together.
 */
static bool is_divided(const struct shstk_symbol *symbol, const struct mapping_id *mapping,
		       uint64_t address)
{
	return symbol->nr > 1 && mapping && address;
}

/* Returns whether a location would be taken for a part of the one that was added last. */
static bool continues_last(const struct pprof_builder *b, uint64_t mapping_id, uint64_t address)
{
	const Location *last = b->out.n_location ? b->out.location[b->out.n_location - 1] : NULL;

	return last && mapping_id && last->mapping_id == mapping_id && last->address == address;
}

static void build_location(struct pprof_builder *b, const struct shstk_location *from,
			   struct location_ids *place)
{
	const struct shstk_symbol *symbol = shstk_location_symbol(b->profile, from);
	struct mapping_id *mapping = find_mapping(b, from->map);
	/* The address must lie inside the call instruction, not behind it. */
	uint64_t address = from->pc - (from->how == SHSTK_SYMADDR_RETURN && from->pc);
	uint64_t mapping_id = mapping ? mapping->mapping->id : 0;
	bool divided = is_divided(symbol, mapping, address);

	if (mapping)
		note_knowledge(mapping->mapping, symbol);
	b->next_id += continues_last(b, mapping_id, address);
	place->id = b->next_id;
	place->nr = divided ? symbol->nr : 1;
	for (unsigned int i = 0; i < place->nr; i++) {
		Location *to = add_location(b, symbol->frames + i, divided ? 1 : symbol->nr);

		if (!to)
			return;
		to->address = address;
		to->mapping_id = mapping_id;
	}
}

/* Makes a location without an address, for the frame above a truncated stack and the like. */
static void build_note(struct pprof_builder *b, int note, struct location_ids *place)
{
	const char *name = shstk_note_name(note);
	struct shstk_symframe frame = {};

	frame.function = shstk_pool_text(b->profile->text, name, strlen(name));
	frame.linkage = frame.function;
	if (!frame.function) {
		b->memory.failed = true;
		return;
	}
	place->id = b->next_id;
	place->nr = 1;
	add_location(b, &frame, 1);
}

/* Returns how many locations there can be: one for each function, and one for each note. */
static size_t count_locations(const struct shstk_profile *profile)
{
	size_t ret = SHSTK_NOTES;

	for (size_t i = 0; i < profile->nr_locations; i++)
		ret += shstk_location_symbol(profile, profile->locations[i])->nr;
	return ret;
}

/* Adds the locations, and behind them those of the notes, which have their places there, too. */
static void build_locations(struct pprof_builder *b)
{
	const struct shstk_profile *profile = b->profile;
	bool noted[SHSTK_NOTES] = { false };
	size_t i;

	for (i = 0; i < profile->nr_records; i++)
		noted[profile->records[i]->note] = true;
	b->next_id = 1;
	b->places = shstk_builder_array(&b->memory, profile->nr_locations + SHSTK_NOTES,
					sizeof(*b->places));
	b->out.location =
		shstk_builder_array(&b->memory, count_locations(profile), sizeof(*b->out.location));
	for (i = 0; i < profile->nr_locations && !b->memory.failed; i++)
		build_location(b, profile->locations[i], b->places + i);
	for (i = 1; i < SHSTK_NOTES && !b->memory.failed; i++)
		if (noted[i])
			build_note(b, i, b->places + profile->nr_locations + i);
}

static Label *build_label(struct pprof_builder *b, const char *key, const char *str, int64_t num)
{
	Label *label = SHSTK_BUILDER_NEW(&b->memory, Label, shstk__pprof__label__init);

	if (label) {
		label->key = pool_text_number(b, key);
		label->str = text_number(b, str);
		label->num = num;
	}
	return label;
}

static void build_labels(struct pprof_builder *b, const struct shstk_record *from, Sample *to)
{
	const struct shstk_labels *own = from->labels;
	size_t i;

	to->label =
		shstk_builder_array(&b->memory, 3 + (own ? own->nr / 2 : 0), sizeof(*to->label));
	if (!to->label)
		return;
	/* Process, thread and name may be unknown in a profile that was read. */
	if (shstk_symproc_pid(from->proc) >= 0)
		to->label[to->n_label++] =
			build_label(b, "pid", NULL, shstk_symproc_pid(from->proc));
	if (from->tid >= 0)
		to->label[to->n_label++] = build_label(b, "tid", NULL, from->tid);
	if (*from->comm)
		to->label[to->n_label++] = build_label(b, "thread", from->comm, 0);
	for (i = 0; own && i < own->nr; i += 2)
		to->label[to->n_label++] = build_label(b, own->text[i], own->text[i + 1], 0);
}

/* Returns the place of a record's @i-th entry; behind the last one is its note. */
static const struct location_ids *place_of(const struct pprof_builder *b,
					   const struct shstk_record *from, uint64_t i)
{
	return b->places +
	       (i < from->nr ? from->locations[i] : b->profile->nr_locations + from->note);
}

/* Fills in the stack of a sample. */
static void build_stack(struct pprof_builder *b, const struct shstk_record *from, Sample *to)
{
	const uint64_t entries = from->nr + (from->note != SHSTK_NOTE_NONE);
	size_t nr = 1; /* no array is empty */

	for (uint64_t i = 0; i < entries; i++)
		nr += place_of(b, from, i)->nr;
	to->location_id = shstk_builder_array(&b->memory, nr, sizeof(*to->location_id));
	if (!to->location_id)
		return;
	for (uint64_t i = 0; i < entries; i++) {
		const struct location_ids *place = place_of(b, from, i);

		for (unsigned int k = 0; k < place->nr; k++)
			to->location_id[to->n_location_id++] = place->id + k;
	}
}

static Sample *build_sample(struct pprof_builder *b, const struct shstk_record *from)
{
	Sample *to = SHSTK_BUILDER_NEW(&b->memory, Sample, shstk__pprof__sample__init);

	if (!to)
		return NULL;
	build_stack(b, from, to);
	to->value = from->values;
	to->n_value = b->profile->nr_types;
	build_labels(b, from, to);
	return to;
}

static void build_samples(struct pprof_builder *b)
{
	const struct shstk_profile *profile = b->profile;
	size_t i;

	b->out.sample =
		shstk_builder_array(&b->memory, profile->nr_records, sizeof(*b->out.sample));
	for (i = 0; i < profile->nr_records && !b->memory.failed; i++)
		b->out.sample[b->out.n_sample++] = build_sample(b, profile->records[i]);
}

static ValueType *build_type(struct pprof_builder *b, const struct shstk_value_type *from)
{
	ValueType *to = SHSTK_BUILDER_NEW(&b->memory, ValueType, shstk__pprof__value_type__init);

	if (to) {
		to->type = text_number(b, from->type);
		to->unit = text_number(b, from->unit);
	}
	return to;
}

/* Returns the number of a caution's text. The mark lets readers tell it from other comments. */
static int64_t caution_number(struct pprof_builder *b, const char *caution)
{
	char *text;
	int64_t ret;

	if (asprintf(&text, SHSTK_CAUTION_MARK "%s", caution) < 0) {
		b->memory.failed = true;
		return 0;
	}
	ret = pool_text_number(b, text);
	free(text);
	return ret;
}

static void build_header(struct pprof_builder *b, const struct shstk_write_opts *opts)
{
	const struct shstk_profile *profile = b->profile;
	unsigned int i;
	size_t k;

	b->out.sample_type =
		shstk_builder_array(&b->memory, profile->nr_types, sizeof(*b->out.sample_type));
	for (i = 0; i < profile->nr_types && !b->memory.failed; i++)
		b->out.sample_type[b->out.n_sample_type++] = build_type(b, &profile->types[i]);
	if (profile->period_type.type)
		b->out.period_type = build_type(b, &profile->period_type);
	b->out.period = profile->period;
	b->out.time_nanos = profile->start;
	b->out.duration_nanos = profile->duration;
	if (profile->nr_types)
		b->out.default_sample_type =
			text_number(b, profile->types[shstk_shown_type(profile, opts)].type);
	b->out.comment = shstk_builder_array(
		&b->memory, profile->nr_cautions + profile->nr_comments, sizeof(*b->out.comment));
	for (k = 0; k < profile->nr_cautions && !b->memory.failed; k++)
		b->out.comment[b->out.n_comment++] = caution_number(b, profile->cautions[k]);
	for (k = 0; k < profile->nr_comments && !b->memory.failed; k++)
		b->out.comment[b->out.n_comment++] = text_number(b, profile->comments[k]);
}

static int build(struct pprof_builder *b, const struct shstk_write_opts *opts)
{
	shstk_builder_push(&b->memory, &b->text_list, "");
	build_header(b, opts);
	build_mappings(b);
	build_locations(b);
	build_samples(b);
	b->out.function = (Function **)b->function_list.v;
	b->out.n_function = b->function_list.nr;
	b->out.string_table = (char **)b->text_list.v;
	b->out.n_string_table = b->text_list.nr;
	return b->memory.failed ? -ENOMEM : 0;
}

static void builder_deinit(struct pprof_builder *b)
{
	HASH_CLEAR(hh, b->texts);
	HASH_CLEAR(hh, b->functions);
	HASH_CLEAR(hh, b->mappings);
	free(b->text_list.v);
	free(b->function_list.v);
	shstk_pool_deinit(&b->memory.pool);
}

/* Collects the pieces of the message: protobuf-c hands them over a few bytes at a time. */
struct sink {
	ProtobufCBuffer base; /* must be first: the sink is found by it */
	z_stream z;
	FILE *out;
	size_t nr;
	uint8_t in[16384];
	uint8_t packed[16384];
};

static void compress_pending(struct sink *sink, int flush)
{
	sink->z.next_in = sink->in;
	sink->z.avail_in = sink->nr;
	do {
		sink->z.next_out = sink->packed;
		sink->z.avail_out = sizeof(sink->packed);
		deflate(&sink->z, flush);
		fwrite(sink->packed, 1, sizeof(sink->packed) - sink->z.avail_out, sink->out);
	} while (!sink->z.avail_out);
	sink->nr = 0;
}

static void append(ProtobufCBuffer *base, size_t len, const uint8_t *data)
{
	struct sink *sink = (struct sink *)base;
	size_t n;

	while (len) {
		n = sizeof(sink->in) - sink->nr;
		if (n > len)
			n = len;
		memcpy(sink->in + sink->nr, data, n);
		sink->nr += n;
		data += n;
		len -= n;
		if (sink->nr == sizeof(sink->in))
			compress_pending(sink, Z_NO_FLUSH);
	}
}

static int pack(const Profile *profile, FILE *out)
{
	struct sink *sink = calloc(1, sizeof(*sink));

	if (!sink)
		return -ENOMEM;
	sink->base.append = append;
	sink->out = out;
	/* 15 + 16 means the largest window, in a gzip wrapper. */
	if (deflateInit2(&sink->z, LEVEL, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
		free(sink);
		return -ENOMEM;
	}
	shstk__pprof__profile__pack_to_buffer(profile, &sink->base);
	compress_pending(sink, Z_FINISH);
	deflateEnd(&sink->z);
	free(sink);
	return 0;
}

struct plain {
	ProtobufCBuffer base; /* must be first: the struct is found by it */
	FILE *out;
};

static void append_plain(ProtobufCBuffer *base, size_t len, const uint8_t *data)
{
	fwrite(data, 1, len, ((struct plain *)base)->out);
}

static int pack_plain(const Profile *profile, FILE *out)
{
	struct plain plain = { .base.append = append_plain, .out = out };

	shstk__pprof__profile__pack_to_buffer(profile, &plain.base);
	return 0;
}

static int write_as(const struct shstk_profile *profile, FILE *out,
		    const struct shstk_write_opts *opts,
		    int (*how)(const Profile *profile, FILE *out))
{
	struct pprof_builder b = { .profile = profile };
	int err;

	shstk_pool_init(&b.memory.pool);
	shstk__pprof__profile__init(&b.out);
	err = build(&b, opts);
	if (!err)
		err = how(&b.out, out);
	builder_deinit(&b);
	return err;
}

static int write_pprof(const struct shstk_profile *profile, FILE *out,
		       const struct shstk_write_opts *opts)
{
	return write_as(profile, out, opts, pack);
}

static int write_pb(const struct shstk_profile *profile, FILE *out,
		    const struct shstk_write_opts *opts)
{
	return write_as(profile, out, opts, pack_plain);
}

/* The format "pb" is the same message, not compressed. */
const struct shstk_format shstk_format_pb = {
	.name = "pb",
	.suffixes = ".pb",
	.write = write_pb,
};

const struct shstk_format shstk_format_pprof = {
	.name = "pprof",
	.suffixes = ".pb.gz .pprof",
	.write = write_pprof,
};
