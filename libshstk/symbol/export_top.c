// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * export_top.c - the functions with the highest values, as a table for people and as JSON.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"
#include "json.h"

#define LINES 20
#define NUMBERS 42 /* columns before the names */
#define HOTTEST_ROOM 60 /* bytes of a name in a line of progress */

struct top_entry {
	UT_hash_handle hh;
	const char *name; /* key */
	int64_t self;
	int64_t total;
	const struct shstk_record *seen; /* last record that the function was met in */
};

/**
 * struct top_table - the functions
 * @pool: memory of the entries.
 * @entries: one entry for each function.
 * @whole: value that counts as 100 %: the sum of all values, without their signs.
 * @full_names: names are not shortened.
 * @width: columns of a line, or 0.
 * @lines: the entries are source lines of functions.
 */
struct top_table {
	struct shstk_pool pool;
	struct top_entry *entries;
	int64_t whole;
	bool full_names;
	unsigned int width;
	bool lines;
};

static struct top_entry *get_entry(struct top_table *table, const char *name)
{
	struct top_entry *entry;

	HASH_FIND(hh, table->entries, &name, sizeof(name), entry);
	if (entry)
		return entry;
	entry = shstk_pool_alloc(&table->pool, sizeof(*entry));
	if (!entry)
		return NULL;
	entry->name = name;
	HASH_ADD(hh, table->entries, name, sizeof(entry->name), entry);
	return entry->hh.tbl ? entry : NULL;
}

/*
 * Returns the name of a frame's entry: its function, or its line and function. NULL when memory
 * runs out.
 */
static const char *entry_name(const struct shstk_profile *profile, const struct top_table *table,
			      const struct shstk_symframe *frame)
{
	const char *base, *ret;
	char *text;
	int len;

	if (!table->lines || !frame->file || !frame->line)
		return frame->function;
	base = strrchr(frame->file, '/');
	len = asprintf(&text, "%s:%u %s", base ? base + 1 : frame->file, frame->line,
		       frame->function);
	if (len < 0)
		return NULL;
	ret = shstk_pool_text(profile->text, text, len);
	free(text);
	return ret;
}

static int add_record(const struct shstk_profile *profile, struct top_table *table,
		      const struct shstk_record *record, int64_t value)
{
	const struct shstk_symbol *symbol;
	struct top_entry *entry;
	unsigned int k;
	uint64_t i;

	table->whole = shstk_add(table->whole, value > -INT64_MAX ? llabs(value) : INT64_MAX);
	for (i = 0; i < record->nr; i++) {
		symbol = shstk_location_symbol(profile, profile->locations[record->locations[i]]);
		for (k = 0; k < symbol->nr; k++) {
			const char *name = entry_name(profile, table, &symbol->frames[k]);

			entry = name ? get_entry(table, name) : NULL;
			if (!entry)
				return -ENOMEM;
			if (!i && !k)
				entry->self = shstk_add(entry->self, value);
			/* A recursive function counts once per record. */
			if (entry->seen != record)
				entry->total = shstk_add(entry->total, value);
			entry->seen = record;
		}
	}
	return 0;
}

static int by_value(const struct top_entry *a, const struct top_entry *b)
{
	if (a->self != b->self)
		return a->self > b->self ? -1 : 1;
	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	return strcmp(a->name, b->name);
}

static int by_total(const struct top_entry *a, const struct top_entry *b)
{
	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	return by_value(a, b);
}

static double percent(int64_t part, int64_t whole)
{
	return whole ? 100.0 * part / whole : 0;
}

static const struct shstk_value_type *shown_type(const struct shstk_profile *profile,
						 unsigned int type)
{
	static const struct shstk_value_type none = { "nothing", "", NULL };

	return profile->nr_types ? &profile->types[type] : &none;
}

/* Writes the table as JSON for programs; values are in the type's unit. */
static void put_json(const struct shstk_profile *profile, FILE *out, const struct top_table *table,
		     unsigned int type, unsigned int lines)
{
	const struct shstk_value_type *shown = shown_type(profile, type);
	struct json json = { .out = out };
	struct top_entry *entry;

	shstk_json_open(&json, NULL, '{');
	shstk_json_string(&json, "type", shown->type);
	shstk_json_string(&json, "unit", shown->unit);
	shstk_json_string(&json, "note", shown->note);
	shstk_json_int(&json, "total", shstk_profile_total(profile, type));
	shstk_json_open(&json, "cautions", '[');
	for (size_t i = 0; i < profile->nr_cautions; i++)
		shstk_json_string(&json, NULL, profile->cautions[i]);
	shstk_json_close(&json);
	shstk_json_open(&json, "functions", '[');
	for (entry = table->entries; entry && lines--; entry = entry->hh.next) {
		shstk_json_open(&json, NULL, '{');
		shstk_json_string(&json, "function", entry->name);
		shstk_json_int(&json, "self", entry->self);
		shstk_json_int(&json, "total", entry->total);
		shstk_json_close(&json);
	}
	shstk_json_close(&json);
	shstk_json_close(&json);
}

/* Returns how many bytes of @text the next line takes, if @room are left. */
static size_t line_length(const char *text, size_t room)
{
	size_t n = strlen(text), i;

	if (n <= room)
		return n;
	for (i = room; i && text[i] != ' '; i--)
		;
	if (i)
		return i;
	/* A word that is longer than a line. In UTF-8 bytes within characters begin with 10. */
	for (i = room; i > 1 && (text[i] & 0xc0) == 0x80; i--)
		;
	return i;
}

void shstk_put_caution(FILE *out, const char *text, unsigned int width)
{
	const char *begin = "caution: ";
	const size_t indent = strlen(begin);

	do {
		size_t n = width > indent ? line_length(text, width - indent) : strlen(text);

		fprintf(out, "%*s%.*s\n", (int)indent, begin, (int)n, text);
		text += n;
		text += strspn(text, " ");
		begin = "";
	} while (*text);
}

/* Returns the name of an entry as the table shows it. */
static const char *shown_name(const struct top_table *table, const struct top_entry *entry,
			      char *label)
{
	if (table->width && !table->full_names)
		return shstk_short_name(entry->name,
					table->width > NUMBERS ? table->width - NUMBERS : 0, label);
	return shstk_label(entry->name,
			   table->full_names || table->lines ? SIZE_MAX : SHSTK_LABEL_ROOM, label,
			   SHSTK_LABEL_MAX);
}

static void put_table(const struct shstk_profile *profile, FILE *out, const struct top_table *table,
		      unsigned int type, unsigned int lines)
{
	char label[SHSTK_LABEL_MAX];
	const struct shstk_value_type *shown = shown_type(profile, type);
	const char *unit = shown->unit;
	char self[32], total[32];
	const int64_t cut = shstk_profile_truncated(profile, type);
	struct top_entry *entry;

	for (size_t i = 0; i < profile->nr_cautions; i++)
		shstk_put_caution(out, profile->cautions[i], table->width);
	shstk_format_value(total, sizeof(total), shstk_profile_total(profile, type), unit);
	fputs(table->width ? shstk_short_name(shown->type, table->width / 2, label) : shown->type,
	      out);
	if (shown->note)
		fprintf(out, " (%s)", shown->note);
	fprintf(out, ", %s in all", total);
	if (cut > 0)
		fprintf(out, "; %.2f %% truncated", percent(cut, table->whole));
	fprintf(out, "\n%12s %6s %12s %6s  %s\n", "self", "%", "with callees", "%", "function");
	for (entry = table->entries; entry && lines--; entry = entry->hh.next) {
		shstk_format_value(self, sizeof(self), entry->self, unit);
		shstk_format_value(total, sizeof(total), entry->total, unit);
		fprintf(out, "%12s %6.2f %12s %6.2f  %s\n", self,
			percent(entry->self, table->whole), total,
			percent(entry->total, table->whole), shown_name(table, entry, label));
	}
}

/* Writes the first entry of the table, without a line break. */
static void put_hottest(const struct shstk_profile *profile, FILE *out,
			const struct top_table *table, unsigned int type, unsigned int lines)
{
	const struct top_entry *entry = table->entries;
	char label[SHSTK_LABEL_MAX];

	(void)profile, (void)type, (void)lines;
	if (entry && entry->self > 0)
		fprintf(out, "%.1f %% %s", percent(entry->self, table->whole),
			shstk_label(entry->name, HOTTEST_ROOM, label, sizeof(label)));
}

typedef void (*put_fn)(const struct shstk_profile *profile, FILE *out,
		       const struct top_table *table, unsigned int type, unsigned int lines);

static int write_by(put_fn put, const struct shstk_profile *profile, FILE *out,
		    const struct shstk_write_opts *opts)
{
	unsigned int type = shstk_shown_type(profile, opts);
	struct top_table table = {
		.full_names = opts->full_names,
		.lines = opts->lines,
		.width = opts->width,
	};
	size_t i;
	int err = 0;

	shstk_pool_init(&table.pool);
	for (i = 0; i < profile->nr_records && !err; i++)
		err = add_record(profile, &table, profile->records[i],
				 profile->records[i]->values[type]);
	if (!err) {
		if (opts->by_total)
			HASH_SORT(table.entries, by_total);
		else
			HASH_SORT(table.entries, by_value);
		put(profile, out, &table, type, opts->top ? opts->top : LINES);
	}
	HASH_CLEAR(hh, table.entries);
	shstk_pool_deinit(&table.pool);
	return err;
}

static int write_top(const struct shstk_profile *profile, FILE *out,
		     const struct shstk_write_opts *opts)
{
	return write_by(put_table, profile, out, opts);
}

static int write_json(const struct shstk_profile *profile, FILE *out,
		      const struct shstk_write_opts *opts)
{
	return write_by(put_json, profile, out, opts);
}

int shstk_profile_hottest(const struct shstk_profile *profile, FILE *out)
{
	const struct shstk_write_opts opts = { .top = 1 };

	return write_by(put_hottest, profile, out, &opts);
}

const struct shstk_format shstk_format_top = {
	.name = "top",
	.suffixes = ".txt .top",
	.write = write_top,
};

const struct shstk_format shstk_format_json = {
	.name = "json",
	.suffixes = ".json",
	.write = write_json,
};
