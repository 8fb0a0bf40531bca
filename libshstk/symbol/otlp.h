/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * otlp.h - samples as messages of OpenTelemetry's profiles (otlp.proto).
 *
 * A message is complete: it has its own tables, and anybody who reads OTLP can read it alone. It has
 * one Profile for each kind of values, all with the same samples in the same order. Here a message
 * is only made; kept.c writes a file of such messages, and import_otlp.c reads one.
 *
 * What OpenTelemetry has no name for is in attributes that begin with "shstk.":
 *
 *   of the scope
 *     shstk.title          title of flame graphs
 *     shstk.clock          int: what was added to the recorder's clock for the times of samples, ns
 *     shstk.so_far         what the recorder had counted when the message was made
 *     shstk.end            bool: this is the last message
 *     shstk.names          int: where in the file the messages begin that only name locations
 *     shstk.comments, shstk.cautions    lists of texts, in the last message
 *     shstk.lives          list of texts: processes that began or ended (shstk_life_format())
 *   of a Profile
 *     shstk.default        bool: this kind of values is shown where one is
 *     shstk.note           text that is shown beside the name of these values
 *   of a mapping
 *     shstk.kind           int: enum shstk_symmap_kind
 *     shstk.main           bool: this is the program of the command that was started
 *   of a location
 *     shstk.location       int: number of the location, the same in all messages of a file
 *     shstk.return         bool: the address is that of the byte before a return address
 *     shstk.guessed        bool: that it is on the stack was found by guessing
 *     shstk.function       int: address at which the function begins
 *     shstk.unresolved     bool: what is given as its function is only where it lies
 */
#ifndef SHSTK_OTLP_H
#define SHSTK_OTLP_H

#include "export.h"

#define SHSTK_OTLP_TITLE "shstk.title"
#define SHSTK_OTLP_CLOCK "shstk.clock"
#define SHSTK_OTLP_SO_FAR "shstk.so_far"
#define SHSTK_OTLP_END "shstk.end"
#define SHSTK_OTLP_NAMES "shstk.names"
#define SHSTK_OTLP_COMMENTS "shstk.comments"
#define SHSTK_OTLP_CAUTIONS "shstk.cautions"
#define SHSTK_OTLP_LIVES "shstk.lives"
#define SHSTK_OTLP_DEFAULT "shstk.default"
#define SHSTK_OTLP_NOTE "shstk.note"
#define SHSTK_OTLP_KIND "shstk.kind"
#define SHSTK_OTLP_MAIN "shstk.main"
#define SHSTK_OTLP_LOCATION "shstk.location"
#define SHSTK_OTLP_RETURN "shstk.return"
#define SHSTK_OTLP_GUESSED "shstk.guessed"
#define SHSTK_OTLP_FUNCTION "shstk.function"
#define SHSTK_OTLP_UNRESOLVED "shstk.unresolved"
#define SHSTK_OTLP_BUILD_ID "process.executable.build_id.gnu"
#define SHSTK_OTLP_HTLHASH "process.executable.build_id.htlhash"
#define SHSTK_OTLP_LANGUAGE "profile.frame.type"
#define SHSTK_OTLP_PID "process.pid"
#define SHSTK_OTLP_TID "thread.id"
#define SHSTK_OTLP_THREAD "thread.name"
#define SHSTK_OTLP_CPU "cpu.logical_number"

/* Keys of labels that tell a span of a trace, in hexadecimal digits. In a message it is a link. */
#define SHSTK_OTLP_TRACE "trace_id"
#define SHSTK_OTLP_SPAN "span_id"

#define SHSTK_OTLP_ID 16 /* bytes of the id of a Profile */
#define SHSTK_OTLP_TRACE_ID 16 /* bytes of the id of a trace */
#define SHSTK_OTLP_SPAN_ID 8 /* bytes of the id of a span */

/**
 * struct shstk_otlp_sample - a sample that waits to be written
 * @record: its process, thread, stack and labels.
 * @time: its time in ns of the recorder's clock, 0: none.
 * @cpu: number of the CPU it was taken on, -1: not known.
 * @values: one value of each type. A list of samples has no room for types that there are not.
 */
struct shstk_otlp_sample {
	const struct shstk_record *record;
	uint64_t time;
	int32_t cpu;
	int64_t values[SHSTK_PROFILE_MAX_TYPES];
};

/* Returns the bytes that a sample with @nr_types values has in a list. */
static inline size_t shstk_otlp_sample_size(unsigned int nr_types)
{
	return offsetof(struct shstk_otlp_sample, values) + nr_types * sizeof(int64_t);
}

/**
 * struct shstk_otlp_about - what all messages of a recording say of it
 * @title: title of flame graphs; NULL: that of the profile, if it was read.
 * @type: kind of values that is shown where one is, from 1; 0: the last one.
 * @no_names: with ids: functions in files have no names.
 * @resource: attributes of the resource: a name, its value, the next name, and so on. One that has
 *	the name of an attribute that messages have anyway takes its place.
 * @nr_resource: number of elements of @resource, twice that of attributes.
 */
struct shstk_otlp_about {
	const char *title;
	unsigned int type;
	bool no_names;
	const char *const *resource;
	size_t nr_resource;
};

/**
 * struct shstk_otlp_message - what a message is made of
 * @profile: the profile that the samples belong to.
 * @about: the recording.
 * @samples: the samples, one after another.
 * @nr: number of samples.
 * @named: locations have the names of their functions, which are looked up. Otherwise only code that
 *	is in no file has them: it can't be looked up later.
 * @first_name: without samples: the first location that is named, an index.
 * @nr_names: number of locations that are named.
 * @first_life: the first of the profile's lives that is in it, an index.
 * @nr_lives: number of lives that are in it.
 * @so_far: what was counted so far, or NULL.
 * @end: this is the last message.
 * @names_at: with @end: where the messages begin that only name locations; 0: there are none.
 * @id: SHSTK_OTLP_ID bytes that tell its Profiles from all others, or NULL: they have no id. The last
 *	four bytes are 0: the number of the process and of the kind of values are put there. With ids,
 *	each process is a resource of its own.
 */
struct shstk_otlp_message {
	const struct shstk_profile *profile;
	const struct shstk_otlp_about *about;
	const uint8_t *samples;
	size_t nr;
	bool named;
	size_t first_name;
	size_t nr_names;
	size_t first_life;
	size_t nr_lives;
	const char *so_far;
	bool end;
	uint64_t names_at;
	const uint8_t *id;
};

/**
 * shstk_otlp_pack() - make a message
 * @message: what it is made of.
 * @ret: receives the bytes, to be freed.
 * @size: receives their number.
 *
 * The bytes are a ProfilesData, and as well the body of a request to a collector.
 *
 * Return: 0 or -ENOMEM.
 */
int shstk_otlp_pack(const struct shstk_otlp_message *message, uint8_t **ret, size_t *size);

/* Returns the name that OpenTelemetry has for the key of a label; @key itself if it has none. */
const char *shstk_otlp_from_label(const char *key);
/* Returns the key of a label that has this name in OpenTelemetry. */
const char *shstk_otlp_to_label(const char *name);

#endif /* SHSTK_OTLP_H */
