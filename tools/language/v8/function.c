// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * function.c - what a function of JavaScript, or machine code made of functions, says.
 *
 * All of it was copied from the memory of a process, which may hold anything.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/native.h"
#include "libshstk/unaligned.h"
#include "tools/language/v8/v8.h"

#define BYTES 8 /* bit of a string's type: a character has one byte */
#define UNNAMED "(anonymous)"
#define UNKNOWN "(machine code)" /* the function that follows, or one that is inlined in it */
#define MOST_UTF8 3 /* bytes of a character of two */

static uint32_t character(const uint8_t *text, size_t i, bool wide)
{
	return wide ? text[2 * i] | (uint32_t)text[2 * i + 1] << 8 : text[i];
}

static bool is_wide(uint64_t type)
{
	return !(type & BYTES);
}

/* Writes a character in UTF-8; half of a pair becomes a question mark. Returns its end. */
static char *write_character(char *to, uint32_t c)
{
	if (c >= 0xd800 && c < 0xe000)
		c = '?';
	if (c < 0x80) {
		*to++ = (char)c;
	} else if (c < 0x800) {
		*to++ = (char)(0xc0 | c >> 6);
		*to++ = (char)(0x80 | (c & 0x3f));
	} else {
		*to++ = (char)(0xe0 | c >> 12);
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
		*to++ = (char)(0x80 | (c & 0x3f));
	}
	return to;
}

/* Returns a string of which @size bytes were copied, malloc'ed, or NULL without memory. */
static char *make_string(const uint8_t *bytes, size_t size, uint64_t head, uint64_t type)
{
	const bool wide = is_wide(type);
	size_t nr = size >> wide;
	char *ret = malloc(nr * MOST_UTF8 + sizeof("...")), *to = ret;

	if (!ret)
		return NULL;
	for (size_t i = 0; i < nr && character(bytes, i, wide); i++)
		to = write_character(to, character(bytes, i, wide));
	strcpy(to, nr && nr < head >> 32 ? "..." : "");
	return ret;
}

/* Returns the name to show. A function without a name says nothing without its file. */
static char *make_name(char *name, const char *file)
{
	const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
	char *ret;

	if (*name || !*base)
		return strdup(*name ? name : UNNAMED);
	return asprintf(&ret, UNNAMED " (%s)", base) < 0 ? NULL : ret;
}

/* Returns whether everything is in the record. */
static bool fits(const struct language_code *code, size_t size)
{
	const __u64 *w = code->words;
	size_t table, most;

	if (size < offsetof(struct language_code, table))
		return false;
	table = size - offsetof(struct language_code, table);
	most = code->got[2] <= table ? table - code->got[2] : 0;
	if (w[NATIVE_KIND] == NATIVE_MACHINE || w[NATIVE_KIND] == NATIVE_BASELINE)
		return w[NATIVE_CODE_INLINED] < NATIVE_PARTS &&
		       code->got[0] == 8 * w[NATIVE_CODE_INLINED] &&
		       code->got[1] < NATIVE_PARTS * NATIVE_PART_BYTES && code->got[2] <= table &&
		       w[NATIVE_CODE_BYTES] <= most && w[NATIVE_CODE_RETURNS] <= most &&
		       w[NATIVE_CODE_STATES] <= most &&
		       w[NATIVE_CODE_BYTES] + w[NATIVE_CODE_RETURNS] + w[NATIVE_CODE_STATES] <=
			       most;
	return w[NATIVE_KIND] == NATIVE_INTERPRETED && code->got[0] < LANGUAGE_SHORT &&
	       code->got[1] < LANGUAGE_SHORT && code->got[2] <= table &&
	       w[NATIVE_TEXT_BYTES] <= most;
}

/* How many elements tables have. */
struct table_sizes {
	size_t positions;
	size_t calls;
	size_t returns;
	size_t frames;
	size_t lines;
};

/* Makes what is kept, with room for tables. */
static struct v8_code *make_code(const struct table_sizes *nr)
{
	const size_t size = sizeof(struct v8_code) + nr->positions * sizeof(struct v8_position) +
			    nr->calls * sizeof(struct v8_call) +
			    nr->frames * sizeof(struct v8_frame) +
			    nr->returns * sizeof(struct v8_return) + nr->lines * sizeof(int32_t);
	struct v8_code *c = calloc(1, size);

	if (!c)
		return NULL;
	c->size = size;
	c->calls = (struct v8_call *)(c + 1);
	c->frames = (struct v8_frame *)(c->calls + nr->calls);
	c->positions = (struct v8_position *)(c->frames + nr->frames);
	c->returns = (struct v8_return *)(c->positions + nr->positions);
	c->lines = (int32_t *)(c->returns + nr->returns);
	return c;
}

/* Returns whether a line ends before character @i of a text of @nr. */
static bool begins_line(const uint8_t *text, size_t i, size_t nr, bool wide)
{
	const uint32_t before = character(text, i - 1, wide);

	return before == '\n' || before == 0x2028 || before == 0x2029 ||
	       (before == '\r' && (i == nr || character(text, i, wide) != '\n'));
}

/* Returns how many lines end in a text. Writes where, unless @lines is NULL. */
static size_t find_lines(const uint8_t *text, size_t nr, bool wide, int32_t start, int32_t *lines)
{
	size_t ret = 0;

	for (size_t i = 1; i <= nr; i++) {
		if (!begins_line(text, i, nr, wide))
			continue;
		if (lines)
			lines[ret] = start + (int32_t)i;
		ret++;
	}
	return ret;
}

/*
 * Returns the last position of a table that was not copied whole, or NULL: what follows it in the code may
 * belong to one behind it.
 */
static struct v8_position *last_of_cut(const struct language_code *code, const struct v8_code *c)
{
	return code->got[2] >= NATIVE_TABLE - 1 && c->nr_positions ?
		       &c->positions[c->nr_positions - 1] :
		       NULL;
}

static struct v8_code *make_function(const struct language_code *code)
{
	const __u64 *w = code->words;
	const uint8_t *text = code->table + code->got[2];
	const bool wide = is_wide(w[NATIVE_SOURCE_TYPE]);
	const int32_t start = (int32_t)w[NATIVE_START];
	size_t nr = w[NATIVE_TEXT_BYTES] >> wide;
	struct v8_position *last;
	struct v8_code *c;

	if (!w[NATIVE_LINE] || start < 0 || start > INT32_MAX - NATIVE_TEXT)
		nr = 0;
	c = make_code(&(const struct table_sizes){
		.positions = v8_positions(code->table, code->got[2], NULL),
		.lines = find_lines(text, nr, wide, start, NULL),
	});
	if (!c)
		return NULL;
	c->start = start;
	c->end = start + (int32_t)nr;
	c->nr_positions = v8_positions(code->table, code->got[2], c->positions);
	last = last_of_cut(code, c);
	if (last)
		last->at = -1;
	c->nr_lines = find_lines(text, nr, wide, start, c->lines);
	return c;
}

/* Takes an inlined call apart. Its function is one of @ids, or the function of the code itself. */
static struct v8_call make_call(const uint8_t *bytes, const uint8_t *ids, size_t nr, uint64_t own)
{
	const struct v8_position at = v8_position(get64(bytes));
	const uint32_t function = get32(bytes + 8);

	return (struct v8_call){
		.function = function < nr ? get64(ids + (size_t)8 * function) : own,
		.at = at.at,
		.call = at.call,
	};
}

/* Returns what was copied of the places to which calls return. */
static struct v8_copied_states copied_states(const struct language_code *code, const void *version)
{
	const __u64 *w = code->words;
	const uint8_t *returns = code->table + code->got[2] + w[NATIVE_CODE_BYTES];

	return (struct v8_copied_states){
		.version = version,
		.returns = returns,
		.nr_returns = w[NATIVE_CODE_RETURNS] / NATIVE_RETURN_BYTES,
		.states = returns + w[NATIVE_CODE_RETURNS],
		.states_size = w[NATIVE_CODE_STATES],
		.ids = code->shorts[0],
		.nr_ids = w[NATIVE_CODE_INLINED],
		.own = w[NATIVE_CODE_FUNCTION],
	};
}

static struct v8_code *make_machine(const struct language_code *code, const void *version)
{
	const __u64 *w = code->words;
	const size_t calls = code->got[1] / NATIVE_PART_BYTES;
	const struct v8_copied_states states = copied_states(code, version);
	struct v8_code *c = make_code(&(const struct table_sizes){
		.positions = v8_positions(code->table, code->got[2], NULL),
		.calls = calls,
		.returns = states.nr_returns,
		.frames = v8_returns(&states, NULL, NULL),
	});
	struct v8_position *last;

	if (!c)
		return NULL;
	c->machine = true;
	v8_returns(&states, c->returns, c->frames);
	c->nr_returns = states.nr_returns;
	c->exits = w[NATIVE_CODE_EXITS] + w[NATIVE_CODE_CHECKS] * V8_EXIT_BYTES;
	c->function = w[NATIVE_CODE_FUNCTION];
	c->nr_positions = v8_positions(code->table, code->got[2], c->positions);
	for (c->nr_calls = 0; c->nr_calls < calls; c->nr_calls++)
		c->calls[c->nr_calls] = make_call(code->shorts[1] + c->nr_calls * NATIVE_PART_BYTES,
						  code->shorts[0], w[NATIVE_CODE_INLINED],
						  c->function);
	if (w[NATIVE_CODE_MIDDLE]) {
		v8_take_calls(c, code->table + code->got[2], w[NATIVE_CODE_BYTES],
			      w[NATIVE_CODE_CHECKS]);
		v8_find_operations(c);
	} else if (w[NATIVE_CODE_EXITS] <= INT32_MAX) {
		v8_find_calls(c, code->table + code->got[2], w[NATIVE_CODE_BYTES],
			      w[NATIVE_CODE_EXITS], w[NATIVE_CODE_BYTES] == w[NATIVE_CODE_SIZE]);
	}
	last = last_of_cut(code, c);
	if (last)
		last->returns = 0;
	return c;
}

static struct v8_code *make_baseline(const struct language_code *code, const void *version)
{
	const __u64 *w = code->words;
	const struct v8_copied_baseline copied = {
		.version = version,
		.table = code->table,
		.table_size = code->got[2],
		.bytecodes = code->table + code->got[2],
		.size = w[NATIVE_CODE_BYTES],
	};
	/* What was not copied whole says nothing. */
	const bool whole = w[NATIVE_CODE_BYTES] == w[NATIVE_CODE_SIZE] &&
			   code->got[2] == w[NATIVE_CODE_POSITIONS_LENGTH];
	const size_t nr = whole ? v8_baseline(&copied, NULL) : 0;
	struct v8_code *c = make_code(&(const struct table_sizes){ .positions = nr });

	if (!c)
		return NULL;
	c->baseline = true;
	c->function = w[NATIVE_CODE_FUNCTION];
	c->nr_positions = nr ? v8_baseline(&copied, c->positions) : 0;
	return c;
}

static struct v8_code *make(const struct language_code *code, const void *version)
{
	switch (code->words[NATIVE_KIND]) {
	case NATIVE_MACHINE:
		return make_machine(code, version);
	case NATIVE_BASELINE:
		return make_baseline(code, version);
	default:
		return make_function(code);
	}
}

/* Makes name and file. */
static int make_strings(const struct language_code *code, struct language_function *ret)
{
	const __u64 *w = code->words;
	char *name = make_string(code->shorts[0], code->got[0], w[NATIVE_NAME_HEAD],
				 w[NATIVE_NAME_TYPE]);

	ret->file = make_string(code->shorts[1], code->got[1], w[NATIVE_FILE_HEAD],
				w[NATIVE_FILE_TYPE]);
	if (name && ret->file)
		ret->name = make_name(name, ret->file);
	free(name);
	ret->line = (unsigned int)w[NATIVE_LINE];
	return ret->name ? 0 : -ENOMEM;
}

int v8_function(const void *version, const struct language_code *code, size_t size,
		struct language_function *ret)
{
	struct v8_code *c;

	*ret = (struct language_function){ .line = 0 };
	if (!fits(code, size))
		return -EINVAL;
	c = make(code, version);
	ret->own = c;
	if (!c)
		return -ENOMEM;
	ret->own_bytes = c->size;
	if (!c->machine && !c->baseline)
		return make_strings(code, ret);
	ret->name = strdup(UNKNOWN);
	ret->file = strdup("");
	return ret->name && ret->file ? 0 : -ENOMEM;
}

/* Returns the line of a character of the script, 0: it is not known. */
unsigned int v8_line(const struct language_function *f, int at)
{
	const struct v8_code *c = f->own;
	size_t lo = 0, hi = c->nr_lines;

	if (at <= V8_BYTECODE)
		at = v8_character(c, V8_BYTECODE - at);
	if (at < c->start || at >= c->end)
		return 0;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (c->lines[mid] <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return f->line + (unsigned int)lo;
}
