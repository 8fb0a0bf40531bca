// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * import_pprof.c - reading pprof's format: profile.proto, unpacked by protobuf-c.
 *
 * A file that refers to something that is not in it is refused, as pprof does. Labels with numbers
 * are left out, except "pid" and "tid".
 *
 * Functions that were inlined at one address are several lines of a location, or, as export_pprof.c
 * writes them, several locations with the same address and successive IDs. Where all of these follow
 * each other in a stack, they are one entry of it.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "demangle.h"
#include "import_proto.h"
#include "object_names.h"
#include "profile.pb-c.h"

typedef Shstk__Pprof__Profile Profile;
typedef Shstk__Pprof__ValueType ValueType;
typedef Shstk__Pprof__Sample Sample;
typedef Shstk__Pprof__Label Label;
typedef Shstk__Pprof__Mapping Mapping;
typedef Shstk__Pprof__Location Location;
typedef Shstk__Pprof__Function Function;

/* An ID of the file, and the index of its element in the list that has it. */
struct id {
	uint64_t id;
	size_t at;
};

struct ids {
	struct id *v;
	size_t nr;
};

/**
 * struct place - a location of the file
 * @rest: how many locations, from this one on, are the functions of one address; at least 1.
 * @next: index of the next one of these, if @rest is more than 1.
 * @inner: this is the next one of another location.
 * @note: enum shstk_note that the location stands for.
 * @joined: the entry for all @rest locations; valid if @has_joined.
 * @alone: the entry for this location without the others; valid if @has_alone.
 */
struct place {
	unsigned int rest;
	size_t next;
	bool inner;
	uint8_t note;
	bool has_joined;
	bool has_alone;
	uint32_t joined;
	uint32_t alone;
};

/**
 * struct pprof - a Profile that is being read
 * @in: the file.
 * @from: the unpacked message.
 * @mappings: IDs of the mappings.
 * @functions: IDs of the functions.
 * @locations: IDs of the locations.
 * @maps: the mappings.
 * @places: the locations.
 * @stack: entries of a sample, with room for the longest.
 * @values: values of a sample.
 * @labels: stream into @labels_text.
 * @labels_text: labels of a sample, as &struct shstk_sample has them.
 * @labels_size: bytes in @labels_text.
 */
struct pprof {
	struct shstk_import *in;
	const Profile *from;
	struct ids mappings;
	struct ids functions;
	struct ids locations;
	const struct shstk_symmap **maps;
	struct place *places;
	uint32_t *stack;
	int64_t *values;
	FILE *labels;
	char *labels_text;
	size_t labels_size;
};

/* Returns a string of the string table, or NULL if there is no such string. */
static const char *text(const struct pprof *p, int64_t i)
{
	return shstk_proto_text(p->from->string_table, p->from->n_string_table, i);
}

static int by_id(const void *a, const void *b)
{
	const struct id *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* Fills @ids from a list of @n messages that have a member "id". The value is 0 or -ENOMEM. */
#define MAKE_IDS(p, ids, list, n)                                            \
	({                                                                   \
		(ids)->v = shstk_proto_array((p)->in, n, sizeof(struct id)); \
		(ids)->nr = (ids)->v ? (n) : 0;                              \
		for (size_t i_ = 0; i_ < (ids)->nr; i_++)                    \
			(ids)->v[i_] = (struct id){ (list)[i_]->id, i_ };    \
		if ((ids)->v)                                                \
			qsort((ids)->v, n, sizeof(struct id), by_id);        \
		(ids)->v ? 0 : -ENOMEM;                                      \
	})

static bool find_id(const struct ids *ids, uint64_t id, size_t *ret)
{
	struct id key = { .id = id };
	const struct id *found = bsearch(&key, ids->v, ids->nr, sizeof(key), by_id);

	*ret = found ? found->at : 0;
	return found;
}

static int read_types(struct pprof *p)
{
	const Profile *from = p->from;
	const char *type, *unit;
	int err;

	for (size_t i = 0; i < from->n_sample_type; i++) {
		type = text(p, from->sample_type[i]->type);
		unit = text(p, from->sample_type[i]->unit);
		if (!type || !unit)
			return shstk_proto_broken(p->in, "a kind of values has no name");
		err = shstk_import_type(p->in, i, type, unit);
		if (err)
			return err;
	}
	return shstk_import_types_end(p->in, from->n_sample_type);
}

static int read_comments(struct pprof *p)
{
	struct shstk_profile *profile = p->in->profile;
	const size_t mark = strlen(SHSTK_CAUTION_MARK);
	int err = 0;

	for (size_t i = 0; i < p->from->n_comment && !err; i++) {
		const char *line = text(p, p->from->comment[i]);

		if (!line)
			return shstk_proto_broken(p->in, "a comment is not there");
		err = shstk_import_take(p->in, strlen(line) + SHSTK_IMPORT_FRAME);
		if (err)
			return err;
		if (!strncmp(line, SHSTK_CAUTION_MARK, mark))
			err = shstk_profile_caution(profile, line + mark);
		else
			err = shstk_profile_comment(profile, line);
	}
	return err;
}

/*
 * Sets the time of the profile. With several files, it begins when the first one began, and its
 * duration is the sum of theirs.
 */
static void read_time(struct pprof *p)
{
	struct shstk_profile *profile = p->in->profile;
	int64_t start = p->from->time_nanos;

	if (p->in->source > 1 && profile->start && (!start || profile->start < start))
		start = profile->start;
	shstk_profile_set_time(profile, start,
			       shstk_add(profile->duration, p->from->duration_nanos));
}

static int read_header(struct pprof *p)
{
	const ValueType *period = p->from->period_type;
	struct shstk_profile *profile = p->in->profile;
	const char *type, *unit;
	int err = read_types(p);

	if (!err)
		err = read_comments(p);
	if (err)
		return err;
	read_time(p);
	if (p->in->source > 1)
		return 0;
	type = text(p, p->from->default_sample_type);
	if (type && *type)
		profile->default_type = shstk_profile_find_type(profile, type);
	type = period ? text(p, period->type) : NULL;
	unit = period ? text(p, period->unit) : NULL;
	if (type && unit)
		return shstk_profile_set_period(profile, type, unit, p->from->period);
	return 0;
}

static int read_mappings(struct pprof *p)
{
	const Profile *from = p->from;

	p->maps = shstk_proto_array(p->in, from->n_mapping, sizeof(*p->maps));
	if (!p->maps || MAKE_IDS(p, &p->mappings, from->mapping, from->n_mapping))
		return -ENOMEM;
	for (size_t i = 0; i < from->n_mapping; i++) {
		const Mapping *m = from->mapping[i];
		const char *path = text(p, m->filename), *build_id = text(p, m->build_id);

		if (!path || !build_id)
			return shstk_proto_broken(p->in, "the name of a mapping is not there");
		if (shstk_import_take(p->in, strlen(path) + 4 * SHSTK_IMPORT_FRAME))
			return -E2BIG;
		p->maps[i] = shstk_profile_name_map(p->in->profile, path, m->memory_start,
						    m->memory_limit, m->file_offset, build_id);
		if (!p->maps[i])
			return -ENOMEM;
	}
	/* By convention the first mapping is the program. */
	if (from->n_mapping && !p->in->profile->main_map)
		p->in->profile->main_map = p->maps[0];
	return 0;
}

/*
 * Reads the functions of a location; @frames has room for all of them. Returns 0 or a negative
 * errno.
 */
static int read_lines(struct pprof *p, const Location *from, struct shstk_symframe *frames)
{
	for (size_t i = 0; i < from->n_line; i++) {
		const Function *function;
		size_t at;

		if (!find_id(&p->functions, from->line[i]->function_id, &at))
			return shstk_proto_broken(p->in,
						  "a location is in a function that is not there");
		function = p->from->function[at];
		frames[i] = (struct shstk_symframe){
			.function = text(p, function->name),
			.linkage = text(p, function->system_name),
			.file = text(p, function->filename),
			.line = shstk_proto_line(from->line[i]->line),
			.start_line = shstk_proto_line(function->start_line),
		};
		if (shstk_proto_frame(p->in, &frames[i]))
			return -EINVAL;
	}
	return 0;
}

/* Reads the functions of @nr locations from @i on. Returns 0 or a negative errno. */
static int read_frames(struct pprof *p, size_t i, unsigned int nr, struct shstk_named *named,
		       struct shstk_symframe *frames)
{
	const Location *from = p->from->location[i];
	int err = 0;

	if (from->n_line > SHSTK_FRAMES_MAX)
		return shstk_import_fail(p->in, -E2BIG, "has more than %d functions at one address",
					 SHSTK_FRAMES_MAX);
	if (nr == 1) {
		named->nr = from->n_line ? from->n_line : 1;
		return read_lines(p, from, frames);
	}
	/* Each of several locations has one function. */
	named->nr = nr;
	for (unsigned int k = 0; k < nr && !err; k++, i = p->places[i].next)
		err = read_lines(p, p->from->location[i], frames + k);
	return err;
}

/* Makes the entry for @nr locations from @i on. Returns 0 or a negative errno. */
static int make_entry(struct pprof *p, size_t i, unsigned int nr, uint32_t *ret)
{
	const Location *from = p->from->location[i];
	struct shstk_symframe frames[SHSTK_FRAMES_MAX] = { 0 };
	struct shstk_named named = {
		.address = from->address,
		.source = p->in->source,
		.frames = frames,
	};
	size_t at;
	int err;

	if (from->mapping_id && !find_id(&p->mappings, from->mapping_id, &at))
		return shstk_proto_broken(p->in, "a location is in a mapping that is not there");
	if (from->mapping_id)
		named.map = p->maps[at];
	err = read_frames(p, i, nr, &named, frames);
	if (err)
		return err;
	if (!from->n_line)
		frames[0].function = shstk_place_name(
			p->in->profile->text, named.map ? named.map->name : NULL,
			named.map ? from->address - named.map->start + named.map->offset :
				    from->address);
	if (!frames[0].function)
		return -ENOMEM;
	if (!named.map && !named.address && named.nr == 1)
		p->places[i].note = shstk_import_note(frames[0].function);
	/* A note is not an entry: it is shown above stacks by &shstk_sample.note. */
	if (p->places[i].note)
		return 0;
	return shstk_import_name(p->in, &named, ret);
}

static int make_joined(struct pprof *p, size_t i)
{
	p->places[i].has_joined = true;
	return make_entry(p, i, p->places[i].rest, &p->places[i].joined);
}

/* Returns whether two locations with successive IDs are functions of one address. */
static bool belong_together(const Location *a, const Location *b)
{
	return a->address && a->mapping_id && a->n_line == 1 && b->n_line == 1 &&
	       a->address == b->address && a->mapping_id == b->mapping_id;
}

/* Finds the locations that belong together, by going through their IDs from the last one on. */
static void join_locations(struct pprof *p)
{
	const struct id *v = p->locations.v;

	for (size_t k = p->locations.nr; k-- > 0;) {
		struct place *place = &p->places[v[k].at], *next;

		place->rest = 1;
		if (k + 1 == p->locations.nr || v[k + 1].id != v[k].id + 1 ||
		    !belong_together(p->from->location[v[k].at], p->from->location[v[k + 1].at]))
			continue;
		next = &p->places[v[k + 1].at];
		if (next->rest == SHSTK_FRAMES_MAX)
			continue;
		place->rest += next->rest;
		place->next = v[k + 1].at;
		next->inner = true;
	}
}

/*
 * Reads all locations. Entries are made in the order of the file; those that begin in the midst of
 * inlined functions are made when a stack has them.
 */
static int read_locations(struct pprof *p)
{
	const Profile *from = p->from;
	int err = 0;

	if (MAKE_IDS(p, &p->functions, from->function, from->n_function) ||
	    MAKE_IDS(p, &p->locations, from->location, from->n_location))
		return -ENOMEM;
	p->places = shstk_proto_array(p->in, from->n_location, sizeof(*p->places));
	if (!p->places)
		return -ENOMEM;
	join_locations(p);
	for (size_t i = 0; i < from->n_location && !err; i++)
		if (!p->places[i].inner)
			err = make_joined(p, i);
	return err;
}

/* Returns whether the stack goes on with all locations that belong to the one at @i. */
static bool has_rest(const Sample *from, size_t i, unsigned int rest)
{
	if (rest > from->n_location_id - i)
		return false;
	for (unsigned int k = 1; k < rest; k++)
		if (from->location_id[i + k] != from->location_id[i] + k)
			return false;
	return true;
}

/* Adds the location @at to a stack, and its rest if @joined. Returns 0 or a negative errno. */
static int add_entry(struct pprof *p, size_t at, bool joined, struct shstk_sample *sample)
{
	struct place *place = &p->places[at];
	int err = 0;

	if (joined && !place->has_joined) {
		err = make_joined(p, at);
	} else if (!joined && !place->has_alone) {
		place->has_alone = true;
		err = make_entry(p, at, 1, &place->alone);
	}
	if (place->note)
		sample->note = place->note;
	else
		p->stack[sample->nr++] = joined ? place->joined : place->alone;
	return err;
}

static int read_stack(struct pprof *p, const Sample *from, struct shstk_sample *sample)
{
	bool joined;
	size_t at;
	int err = 0;

	for (size_t i = 0; i < from->n_location_id && !err; i += joined ? p->places[at].rest : 1) {
		if (!find_id(&p->locations, from->location_id[i], &at))
			return shstk_proto_broken(p->in,
						  "a sample has a location that is not there");
		joined = has_rest(from, i, p->places[at].rest);
		err = add_entry(p, at, joined, sample);
	}
	sample->locations = p->stack;
	return err;
}

/*
 * Reads a label. Process ID, thread ID and thread name become members of the sample instead of
 * labels.
 */
static int read_label(struct pprof *p, const Label *label, struct shstk_sample *sample, int *pid)
{
	const char *key = text(p, label->key), *value = text(p, label->str);

	if (!key || !value)
		return shstk_proto_broken(p->in, "a label is not there");
	if (!label->str && !strcmp(key, "pid") && label->num == (int32_t)label->num)
		*pid = label->num;
	else if (!label->str && !strcmp(key, "tid") && label->num == (int32_t)label->num)
		sample->tid = label->num;
	else if (label->str && !strcmp(key, "thread"))
		sample->comm = value;
	else if (label->str)
		fprintf(p->labels, "%s%c%s%c", key, '\0', value, '\0');
	return 0;
}

static int read_labels(struct pprof *p, const Sample *from, struct shstk_sample *sample, int *pid)
{
	int err = 0;

	rewind(p->labels);
	for (size_t i = 0; i < from->n_label && !err; i++)
		err = read_label(p, from->label[i], sample, pid);
	if (fflush(p->labels))
		return -ENOMEM;
	sample->labels = p->labels_text;
	sample->labels_size = ftell(p->labels);
	return err;
}

static int read_sample(struct pprof *p, const Sample *from)
{
	struct shstk_sample sample = { .tid = -1 };
	int pid = -1, err;

	if (from->n_value != p->from->n_sample_type)
		return shstk_proto_broken(p->in,
					  "a sample has more or fewer values than there are kinds");
	memcpy(p->values, from->value, from->n_value * sizeof(*p->values));
	err = read_stack(p, from, &sample);
	if (!err)
		err = read_labels(p, from, &sample, &pid);
	return err ? err : shstk_import_sample(p->in, &sample, pid, p->values);
}

static int read_samples(struct pprof *p)
{
	const Profile *from = p->from;
	size_t most = 0;
	int err = 0;

	for (size_t i = 0; i < from->n_sample; i++)
		if (from->sample[i]->n_location_id > most)
			most = from->sample[i]->n_location_id;
	p->stack = shstk_proto_array(p->in, most, sizeof(*p->stack));
	p->values = shstk_proto_array(p->in, from->n_sample_type, sizeof(*p->values));
	p->labels = open_memstream(&p->labels_text, &p->labels_size);
	if (!p->stack || !p->values || !p->labels)
		return -ENOMEM;
	for (size_t i = 0; i < from->n_sample && !err; i++)
		err = read_sample(p, from->sample[i]);
	return err;
}

static void deinit(struct pprof *p)
{
	if (p->labels)
		fclose(p->labels);
	free(p->labels_text);
	free(p->mappings.v);
	free(p->functions.v);
	free(p->locations.v);
	free(p->maps);
	free(p->places);
	free(p->stack);
	free(p->values);
}

static int read_message(struct shstk_import *in, const Profile *from)
{
	struct pprof p = { .in = in, .from = from };
	int err = read_header(&p);

	if (!err)
		err = read_mappings(&p);
	if (!err)
		err = read_locations(&p);
	if (!err)
		err = read_samples(&p);
	deinit(&p);
	return err;
}

int shstk_import_pprof(struct shstk_import *in, const uint8_t *data, size_t size)
{
	uint64_t before = in->account->memory;
	ProtobufCAllocator allocator = shstk_proto_allocator(in);
	Profile *from = shstk__pprof__profile__unpack(&allocator, size, data);
	uint64_t unpacked = in->account->memory - before;
	int err;

	if (!from)
		return *in->why ? -E2BIG : shstk_import_fail(in, -EINVAL, SHSTK_IMPORT_UNKNOWN);
	err = read_message(in, from);
	if (err == -ENOMEM && !*in->why)
		shstk_import_fail(in, err, "%s", strerror(ENOMEM));
	shstk__pprof__profile__free_unpacked(from, &allocator);
	shstk_account_give(in->account, unpacked);
	return err;
}
