// SPDX-License-Identifier: LGPL-2.1-or-later
/* json.c - writes JSON, as json.h describes. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bidi.h"
#include "json.h"
#include "utf8.h"

/*
 * Returns whether a character is written as an escape, because a terminal does not show it as it
 * is.
 */
static bool is_escaped(uint32_t point)
{
	return point < 0x20 || (point >= 0x7f && point < 0xa0) || shstk_is_bidi(point);
}

static void put_text(FILE *out, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	putc('"', out);
	while (*s) {
		uint32_t point;
		size_t n = shstk_utf8_decode(s, SIZE_MAX, &point);

		if (!n)
			fputs("\\ufffd", out);
		else if (*s == '"' || *s == '\\')
			fprintf(out, "\\%c", *s);
		else if (is_escaped(point))
			fprintf(out, "\\u%04x", point);
		else
			fwrite(s, 1, n, out);
		s += n ? n : 1;
	}
	putc('"', out);
}

/*
 * Writes what stands between the value before and this one. With @line the value starts a new line,
 * which is so for objects and arrays.
 */
static void begin(struct json *json, const char *name, bool line)
{
	if (json->depth) {
		bool *some = &json->some[json->depth - 1];

		fputs(*some ? line ? "," : ", " : "", json->out);
		*some = true;
		if (line)
			fprintf(json->out, "\n%*s", (int)json->depth, "");
	}
	if (name) {
		put_text(json->out, name);
		fputs(": ", json->out);
	}
}

void shstk_json_open(struct json *json, const char *name, char bracket)
{
	if (json->depth == JSON_MAX_DEPTH)
		abort(); /* the callers' depth is fixed in their code */
	begin(json, name, true);
	putc(bracket, json->out);
	json->close[json->depth] = bracket == '{' ? '}' : ']';
	json->some[json->depth++] = false;
}

void shstk_json_close(struct json *json)
{
	putc(json->close[--json->depth], json->out);
	if (!json->depth)
		putc('\n', json->out);
}

void shstk_json_string(struct json *json, const char *name, const char *text)
{
	if (!text) {
		shstk_json_null(json, name);
		return;
	}
	begin(json, name, false);
	put_text(json->out, text);
}

void shstk_json_int(struct json *json, const char *name, int64_t value)
{
	begin(json, name, false);
	fprintf(json->out, "%" PRId64, value);
}

void shstk_json_bool(struct json *json, const char *name, bool value)
{
	begin(json, name, false);
	fputs(value ? "true" : "false", json->out);
}

void shstk_json_real(struct json *json, const char *name, double value)
{
	begin(json, name, false);
	fprintf(json->out, "%.3f", value);
}

void shstk_json_millionth(struct json *json, const char *name, uint64_t value)
{
	begin(json, name, false);
	fprintf(json->out, "%" PRIu64 ".%06u", value / 1000000, (unsigned int)(value % 1000000));
}

void shstk_json_address(struct json *json, const char *name, uint64_t value)
{
	begin(json, name, false);
	fprintf(json->out, "\"0x%" PRIx64 "\"", value);
}

void shstk_json_null(struct json *json, const char *name)
{
	begin(json, name, false);
	fputs("null", json->out);
}

void shstk_json_ints(struct json *json, const char *name, const int64_t *values, size_t nr)
{
	shstk_json_open(json, name, '[');
	for (size_t i = 0; i < nr; i++)
		shstk_json_int(json, NULL, values[i]);
	shstk_json_close(json);
}

void shstk_json_strings(struct json *json, const char *name, const char *const *texts, size_t nr)
{
	shstk_json_open(json, name, '[');
	for (size_t i = 0; i < nr; i++)
		shstk_json_string(json, NULL, texts[i]);
	shstk_json_close(json);
}
