// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * export_speedscope.c - the JSON of speedscope.app, by its file-format-schema.
 *
 * The file has a list of frames, and for each thread a profile of samples; each sample is a list of
 * frames, the outermost one first. Where times are kept the samples are in the order of time.
 *
 * Each inlined function is a frame of its own, which speedscope does not take from pprof's format.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "items.h"
#include "json.h"
#include "format_rows.h"

/**
 * struct speedscope - a file being written
 * @profile: the profile.
 * @json: the output.
 * @pool: memory of @rows.
 * @rows: numbers of frames, by function and file.
 * @frames: the frames by number.
 * @nr_frames: number of elements of @frames.
 * @max_frames: number of elements that @frames has room for.
 * @failed: memory ran out.
 */
struct speedscope {
	const struct shstk_profile *profile;
	struct json json;
	struct shstk_pool pool;
	struct shstk_rows rows;
	struct shstk_symframe *frames;
	size_t nr_frames;
	size_t max_frames;
	bool failed;
};

static void add_frame(struct speedscope *s, const struct shstk_symframe *frame)
{
	struct shstk_symframe *frames;

	frames = shstk_grow(s->frames, s->nr_frames, &s->max_frames, sizeof(*frames));
	if (!frames) {
		s->failed = true;
		return;
	}
	s->frames = frames;
	s->frames[s->nr_frames++] = *frame;
}

/* Writes the number of a frame. */
static void put_frame(struct speedscope *s, const struct shstk_symframe *frame)
{
	const uintptr_t key[SHSTK_ROW_KEY] = { (uintptr_t)frame->function, (uintptr_t)frame->file };
	bool made;
	const struct shstk_row *row = shstk_rows_get(&s->rows, &s->pool, key, &made);

	if (!row) {
		s->failed = true;
		return;
	}
	if (made)
		add_frame(s, frame);
	shstk_json_int(&s->json, NULL, row->id);
}

static void put_note(struct speedscope *s, int note)
{
	const char *name = shstk_note_name(note);
	struct shstk_symframe frame = { 0 };

	frame.function = shstk_pool_text(s->profile->text, name, strlen(name));
	if (frame.function)
		put_frame(s, &frame);
	else
		s->failed = true;
}

static void put_stack(struct speedscope *s, const struct shstk_record *record)
{
	shstk_json_open(&s->json, NULL, '[');
	if (record->note)
		put_note(s, record->note);
	for (uint64_t i = record->nr; i--;) {
		const struct shstk_symbol *symbol = shstk_location_symbol(
			s->profile, s->profile->locations[record->locations[i]]);

		for (unsigned int k = symbol->nr; k--;)
			put_frame(s, symbol->frames + k);
	}
	shstk_json_close(&s->json);
}

static const char *unit_of(const struct shstk_value_type *type)
{
	return !strcmp(type->unit, "nanoseconds") || !strcmp(type->unit, "bytes") ? type->unit :
										    "none";
}

/* Writes the samples from @from to before @to, which belong to one thread. */
static void put_thread(struct speedscope *s, const struct shstk_items *items, size_t from,
		       size_t to, const char *unit)
{
	int64_t sum = 0;

	for (size_t i = from; i < to; i++)
		sum = shstk_add(sum, items->v[i].value);
	shstk_json_open(&s->json, NULL, '{');
	shstk_json_string(&s->json, "type", "sampled");
	shstk_json_string(&s->json, "name", shstk_item_thread(s->profile, &items->v[from]));
	shstk_json_string(&s->json, "unit", unit);
	shstk_json_int(&s->json, "startValue", 0);
	shstk_json_int(&s->json, "endValue", sum);
	shstk_json_open(&s->json, "samples", '[');
	for (size_t i = from; i < to; i++)
		put_stack(s, items->v[i].record);
	shstk_json_close(&s->json);
	shstk_json_open(&s->json, "weights", '[');
	for (size_t i = from; i < to; i++)
		shstk_json_int(&s->json, NULL, items->v[i].value);
	shstk_json_close(&s->json);
	shstk_json_close(&s->json);
}

static void put_frames(struct speedscope *s)
{
	shstk_json_open(&s->json, "shared", '{');
	shstk_json_open(&s->json, "frames", '[');
	for (size_t i = 0; i < s->nr_frames; i++) {
		const struct shstk_symframe *frame = s->frames + i;

		shstk_json_open(&s->json, NULL, '{');
		shstk_json_string(&s->json, "name", frame->function);
		if (frame->file)
			shstk_json_string(&s->json, "file", frame->file);
		if (frame->file && frame->start_line)
			shstk_json_int(&s->json, "line", frame->start_line);
		shstk_json_close(&s->json);
	}
	shstk_json_close(&s->json);
	shstk_json_close(&s->json);
}

/* Writes the name of the file with the cautions in it: speedscope shows the name. */
static void put_name(struct speedscope *s, const struct shstk_write_opts *opts)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out) {
		s->failed = true;
		return;
	}
	fputs(opts->title ? opts->title : "shstk", out);
	for (size_t i = 0; i < s->profile->nr_cautions; i++)
		fprintf(out, "; caution: %s", s->profile->cautions[i]);
	if (fclose(out))
		s->failed = true;
	shstk_json_string(&s->json, "name", text);
	free(text);
}

static void put_file(struct speedscope *s, const struct shstk_items *items,
		     const struct shstk_write_opts *opts, const char *unit)
{
	size_t to;

	shstk_json_open(&s->json, NULL, '{');
	shstk_json_string(&s->json, "$schema",
			  "https://www.speedscope.app/file-format-schema.json");
	shstk_json_string(&s->json, "exporter", "shstk");
	put_name(s, opts);
	shstk_json_open(&s->json, "profiles", '[');
	for (size_t from = 0; from < items->nr; from = to) {
		to = shstk_items_end(items, from);
		put_thread(s, items, from, to, unit);
	}
	shstk_json_close(&s->json);
	put_frames(s);
	shstk_json_close(&s->json);
}

static int write_speedscope(const struct shstk_profile *profile, FILE *out,
			    const struct shstk_write_opts *opts)
{
	struct speedscope s = { .profile = profile, .json = { .out = out } };
	unsigned int type = shstk_shown_type(profile, opts);
	struct shstk_items items;
	int err = shstk_items_make(profile, type, &items);

	if (err)
		return err;
	shstk_pool_init(&s.pool);
	put_file(&s, &items, opts, profile->nr_types ? unit_of(&profile->types[type]) : "none");
	shstk_rows_deinit(&s.rows);
	shstk_pool_deinit(&s.pool);
	free(s.frames);
	shstk_items_deinit(&items);
	return s.failed ? -ENOMEM : 0;
}

const struct shstk_format shstk_format_speedscope = {
	.name = "speedscope",
	.suffixes = ".speedscope.json .speedscope",
	.write = write_speedscope,
};
