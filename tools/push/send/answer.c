// SPDX-License-Identifier: GPL-2.0-or-later
/* answer.c - reads JSON, as answer.h describes. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "tools/push/send/answer.h"

/**
 * struct walk - a walk through a text
 * @at: the next byte.
 * @end: behind the last one.
 * @members: the members that are wanted.
 * @nr: number of elements of @members.
 * @depth: number of objects and arrays around @at.
 * @outer: name of the member of the outermost object that was begun last, or NULL.
 * @outer_size: its bytes.
 */
struct walk {
	const char *at;
	const char *end;
	struct answer_member *members;
	size_t nr;
	unsigned int depth;
	const char *outer;
	size_t outer_size;
};

/**
 * struct string - a string as it is in the text
 * @at: behind the first quotation mark.
 * @size: bytes up to the last one, with escapes as they are.
 */
struct string {
	const char *at;
	size_t size;
};

static bool walk_value(struct walk *w, struct answer_member *member);

static void skip_blanks(struct walk *w)
{
	while (w->at < w->end && memchr(" \t\r\n", *w->at, 4))
		w->at++;
}

/* Steps over a character, and blanks before it. Returns whether it is there. */
static bool take(struct walk *w, char c)
{
	skip_blanks(w);
	if (w->at == w->end || *w->at != c)
		return false;
	w->at++;
	return true;
}

static bool take_word(struct walk *w, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(w->end - w->at) < len || memcmp(w->at, word, len))
		return false;
	w->at += len;
	return true;
}

/* ---- Strings ---- */

/* Returns the value of a digit of a hexadecimal number, or -1. */
static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 32;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads the four digits behind \u. Returns the number, or -1. */
static int32_t read_unit(const char *at, const char *end)
{
	int32_t unit = 0;

	if (end - at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		if (digit(at[i]) < 0)
			return -1;
		unit = unit << 4 | digit(at[i]);
	}
	return unit;
}

/*
 * Reads one character of a string, or one byte of a longer one. Returns how many bytes it takes in the
 * text; 0: it is wrong. @ret receives it if it is printable ASCII, and '?' otherwise.
 */
static size_t read_character(const char *at, const char *end, char *ret)
{
	static const char letters[] = "\"\\/bfnrt";
	int32_t unit = (unsigned char)*at;
	size_t size = 1;

	if (unit < ' ')
		return 0;
	if (*at == '\\') {
		size = 2;
		if (end - at < 2)
			return 0;
		unit = at[1];
		if (unit == 'u') {
			size = 6;
			unit = read_unit(at + 2, end);
			if (unit < 0)
				return 0;
		} else if (!unit || !strchr(letters, unit)) {
			return 0;
		} else if (unit >= 'b') {
			unit = 0;
		}
	}
	*ret = unit >= ' ' && unit < 0x7f ? unit : '?';
	return size;
}

/* Steps over a string. */
static bool walk_string(struct walk *w, struct string *ret)
{
	size_t n;
	char c;

	if (!take(w, '"'))
		return false;
	ret->at = w->at;
	while (w->at < w->end && *w->at != '"') {
		n = read_character(w->at, w->end, &c);
		if (!n)
			return false;
		w->at += n;
	}
	ret->size = w->at - ret->at;
	return take(w, '"');
}

/* Puts a string that was walked over into a member. */
static bool keep_string(struct answer_member *member, const struct string *string)
{
	const char *at = string->at, *end = at + string->size;
	size_t nr = 0;

	while (at < end) {
		if (nr + 1 >= member->room)
			return false;
		at += read_character(at, end, &member->text[nr++]);
	}
	if (!member->room)
		return false;
	member->text[nr] = '\0';
	member->kind = ANSWER_TEXT;
	return true;
}

/* ---- Values ---- */

static bool is_name(const char *name, const char *at, size_t size)
{
	return strlen(name) == size && !memcmp(name, at, size);
}

/* Returns the member of that name here, if it is wanted. */
static struct answer_member *find(const struct walk *w, const struct string *name)
{
	for (size_t i = 0; i < w->nr; i++) {
		struct answer_member *m = w->members + i;

		if (!is_name(m->name, name->at, name->size))
			continue;
		if (w->depth == 1 && !m->outer)
			return m;
		if (w->depth == 2 && m->outer && w->outer &&
		    is_name(m->outer, w->outer, w->outer_size))
			return m;
	}
	return NULL;
}

/* Steps over a member of an object. */
static bool walk_member(struct walk *w)
{
	struct answer_member *member;
	struct string name;

	if (!walk_string(w, &name) || !take(w, ':'))
		return false;
	member = find(w, &name);
	if (member && member->kind != ANSWER_ABSENT)
		return false;
	if (w->depth == 1) {
		w->outer = name.at;
		w->outer_size = name.size;
	}
	return walk_value(w, member);
}

/* Steps over an array or object, whose first bracket was taken. */
static bool walk_inside(struct walk *w, char close)
{
	bool ok = true;

	if (w->depth == ANSWER_DEPTH)
		return false;
	w->depth++;
	if (!take(w, close)) {
		do {
			ok = close == '}' ? walk_member(w) : walk_value(w, NULL);
		} while (ok && take(w, ','));
		ok = ok && take(w, close);
	}
	w->depth--;
	return ok;
}

static size_t walk_digits(struct walk *w)
{
	const char *begin = w->at;

	while (w->at < w->end && *w->at >= '0' && *w->at <= '9')
		w->at++;
	return w->at - begin;
}

static bool walk_number(struct walk *w)
{
	const char *first;

	take_word(w, "-");
	first = w->at;
	if (!walk_digits(w) || (*first == '0' && w->at - first > 1))
		return false;
	if (take_word(w, ".") && !walk_digits(w))
		return false;
	if (take_word(w, "e") || take_word(w, "E")) {
		if (!take_word(w, "-"))
			take_word(w, "+");
		return walk_digits(w) > 0;
	}
	return true;
}

/* Steps over a value that is no string. Returns false if it is wrong. */
static bool walk_other(struct walk *w, enum answer_kind *kind)
{
	*kind = ANSWER_OTHER;
	if (take_word(w, "{"))
		return walk_inside(w, '}');
	if (take_word(w, "["))
		return walk_inside(w, ']');
	if (take_word(w, "true"))
		*kind = ANSWER_TRUE;
	else if (take_word(w, "false"))
		*kind = ANSWER_FALSE;
	else if (take_word(w, "null"))
		*kind = ANSWER_ABSENT;
	else
		return walk_number(w);
	return true;
}

/* Steps over a value, and keeps it if it is that of a member that is wanted. */
static bool walk_value(struct walk *w, struct answer_member *member)
{
	enum answer_kind kind;
	struct string string;

	skip_blanks(w);
	if (w->at < w->end && *w->at == '"')
		return walk_string(w, &string) && (!member || keep_string(member, &string));
	if (!walk_other(w, &kind))
		return false;
	if (member)
		member->kind = kind;
	return true;
}

int answer_read(const char *text, size_t size, struct answer_member *members, size_t nr)
{
	struct walk w = { .at = text, .end = text + size, .members = members, .nr = nr };
	bool ok;

	for (size_t i = 0; i < nr; i++)
		members[i].kind = ANSWER_ABSENT;
	ok = take(&w, '{') && walk_inside(&w, '}');
	skip_blanks(&w);
	if (ok && w.at == w.end)
		return 0;
	for (size_t i = 0; i < nr; i++)
		members[i].kind = ANSWER_ABSENT;
	return -EBADMSG;
}
