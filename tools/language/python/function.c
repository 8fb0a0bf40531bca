// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * function.c - what a code object of CPython says: name, file and lines.
 *
 * All of it was copied from the memory of a process, which may hold anything.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshstk/unaligned.h"
#include "tools/language/python/python.h"
#include "tools/language/python/versions.h"

#define STATE_KIND_SHIFT 2
#define STATE_KIND_MASK 7
#define STATE_COMPACT (1 << 5)
#define STATE_ASCII (1 << 6)
#define FRAME_WORDS 9 /* words of a frame of 3.11 before its variables */

/* ---- Texts ---- */

/* Appends a character in UTF-8. Returns the number of bytes. */
static size_t put_character(char *to, uint32_t c)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 63));
		to[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	to[0] = (char)(0xf0 | (c >> 18 & 7));
	to[1] = (char)(0x80 | (c >> 12 & 63));
	to[2] = (char)(0x80 | (c >> 6 & 63));
	to[3] = (char)(0x80 | (c & 63));
	return 4;
}

static uint32_t character(const uint8_t *at, unsigned int kind)
{
	uint32_t c = 0;

	memcpy(&c, at, kind);
	return c;
}

char *python_text(const struct python_version *v, const uint8_t *object, size_t size)
{
	uint32_t state, kind, at;
	uint64_t length, most;
	size_t n = 0;
	char *text;

	if (size < v->wide)
		return NULL;
	state = get32(object + PYTHON_STATE);
	kind = state >> STATE_KIND_SHIFT & STATE_KIND_MASK;
	length = get64(object + PYTHON_LENGTH);
	if (!(state & STATE_COMPACT) || (kind != 1 && kind != 2 && kind != 4))
		return NULL;
	at = state & STATE_ASCII ? v->ascii : v->wide;
	most = (size - at) / kind;
	text = malloc(4 * (most < length ? most : length) + sizeof("..."));
	if (!text)
		return NULL;
	for (uint64_t i = 0; i < length && i < most; i++)
		n += put_character(text + n, character(object + at + i * kind, kind));
	memcpy(text + n, "...", 4);
	if (length <= most)
		text[n] = '\0';
	return text;
}

/* Returns whether a name is "Task-" and a number: so asyncio calls tasks that were given no name. */
static bool is_given(const char *name)
{
	static const char prefix[] = "Task-";
	const size_t length = sizeof(prefix) - 1;

	return strncmp(name, prefix, length) || !name[length] ||
	       name[length + strspn(name + length, "0123456789")];
}

size_t python_task(const void *version, const uint8_t *name, size_t size, char *buf, size_t max)
{
	char *text = python_text(version, name, size);
	size_t length = text ? strlen(text) + 1 : 0;

	if (length > max || (text && (!*text || !is_given(text))))
		length = 0;
	if (length)
		memcpy(buf, text, length);
	free(text);
	return length;
}

/* A name such as "<module>" says nothing without its file. Returns false without memory. */
static bool add_file(struct language_function *f)
{
	const char *slash = strrchr(f->file, '/'), *base = slash ? slash + 1 : f->file;
	char *name;

	if (*f->name != '<')
		return true;
	if (asprintf(&name, "%s (%s)", f->name, base) < 0)
		return false;
	free(f->name);
	f->name = name;
	return true;
}

/* ---- Lines ---- */

/* What is left of a table of lines. */
struct line_table_rest {
	const uint8_t *at;
	const uint8_t *end;
};

static uint32_t take_number(struct line_table_rest *t)
{
	unsigned int shift = 0;
	uint32_t value = 0;

	while (t->at < t->end) {
		uint8_t byte = *t->at++;

		if (shift < 32)
			value |= (uint32_t)(byte & 63) << shift;
		shift += 6;
		if (!(byte & 64))
			break;
	}
	return value;
}

static int64_t take_signed(struct line_table_rest *t)
{
	uint32_t value = take_number(t);

	return value & 1 ? -(int64_t)(value >> 1) : value >> 1;
}

/* Kinds of entries in the table, Objects/locations.md of CPython. */
enum {
	LOCATION_ONE_LINE = 10, /* and 11, 12: so many lines behind the entry before, less 10 */
	LOCATION_NO_COLUMNS = 13,
	LOCATION_LONG = 14,
	LOCATION_NONE = 15,
};

/* Passes the rest of an entry of that kind. Returns by how much the line changes. */
static int64_t pass_entry(struct line_table_rest *t, unsigned int kind)
{
	int64_t change = 0;

	switch (kind) {
	case LOCATION_NONE:
		break;
	case LOCATION_LONG:
		change = take_signed(t);
		take_number(t);
		take_number(t);
		take_number(t);
		break;
	case LOCATION_NO_COLUMNS:
		change = take_signed(t);
		break;
	case LOCATION_ONE_LINE:
	case LOCATION_ONE_LINE + 1:
	case LOCATION_ONE_LINE + 2:
		change = kind - LOCATION_ONE_LINE;
		t->at += t->end - t->at < 2 ? t->end - t->at : 2;
		break;
	default:
		t->at += t->at < t->end;
	}
	return change;
}

/* Adds instructions up to @end, which are of @line. */
static void add_line(struct language_function *f, int64_t end, unsigned int line)
{
	struct language_line *last = f->nr_lines ? &f->lines[f->nr_lines - 1] : NULL;

	if (last && last->line == line)
		last->end = (uint32_t)end;
	else
		f->lines[f->nr_lines++] = (struct language_line){ (uint32_t)end, line };
}

/*
 * Takes the table of lines apart, so that a line is found without walking all of it. There is no
 * more than one entry for each byte.
 */
static int read_lines(const struct language_code *code, size_t size, struct language_function *ret)
{
	size_t got = code->got[PYTHON_TEXT_LINES];
	int64_t line = ret->line, end = 0;
	struct language_line *less;
	struct line_table_rest t;

	if (got > size - offsetof(struct language_code, table) || got <= PYTHON_BYTES)
		return 0;
	t = (struct line_table_rest){ code->table + PYTHON_BYTES, code->table + got };
	ret->lines = malloc((got - PYTHON_BYTES) * sizeof(*ret->lines));
	if (!ret->lines)
		return -ENOMEM;
	while (t.at < t.end) {
		uint8_t byte = *t.at++;
		unsigned int kind = byte >> 3 & 15;

		end += 2 * ((byte & 7) + 1);
		line += pass_entry(&t, kind);
		add_line(ret, end,
			 kind == LOCATION_NONE || line <= 0 || line > INT32_MAX ? 0 : line);
	}
	less = realloc(ret->lines, ret->nr_lines * sizeof(*ret->lines));
	ret->lines = less ? less : ret->lines;
	return 0;
}

unsigned int python_line(const struct language_function *f, int at)
{
	size_t lo = 0, hi = f->nr_lines;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (at < (int64_t)f->lines[mid].end)
			hi = mid;
		else
			lo = mid + 1;
	}
	return at >= 0 && lo < f->nr_lines ? f->lines[lo].line : 0;
}

/* ---- Functions ---- */

/* Returns four bytes of the code object. */
static uint32_t member(const struct language_code *code, uint32_t offset)
{
	return get32((const uint8_t *)code->words + offset - PYTHON_TYPE);
}

/* Returns the bytes of a frame of the function. */
static uint64_t frame_size(const struct python_version *v, const struct language_code *code)
{
	if (v->size_words)
		return 8 * (uint64_t)member(code, v->size_words);
	return 8 * ((uint64_t)member(code, PYTHON_LOCALS) + member(code, PYTHON_STACK_SIZE) +
		    FRAME_WORDS);
}

int python_function(const void *version, const struct language_code *code, size_t size,
		    struct language_function *ret)
{
	const struct python_version *v = version;

	*ret = (struct language_function){ .line = 0 };
	if (size < offsetof(struct language_code, table) ||
	    code->got[PYTHON_TEXT_NAME] >= LANGUAGE_SHORT ||
	    code->got[PYTHON_TEXT_FILE] >= LANGUAGE_SHORT)
		return -EINVAL;
	ret->line = member(code, v->first_line);
	ret->frame_size = frame_size(v, code);
	ret->first = 2 * (int)(member(code, v->first_traceable) & 0xffffff);
	ret->name = python_text(v, code->shorts[PYTHON_TEXT_NAME], code->got[PYTHON_TEXT_NAME]);
	ret->file = python_text(v, code->shorts[PYTHON_TEXT_FILE], code->got[PYTHON_TEXT_FILE]);
	if (!ret->name || !ret->file)
		return -EINVAL;
	return add_file(ret) ? read_lines(code, size, ret) : -ENOMEM;
}
