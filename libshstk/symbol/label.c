// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * label.c - shortens long names of C++ or Rust functions for people, where there is little room.
 *
 * Parts are left out in this order, until the rest fits: what a function takes and returns;
 * arguments of templates inside such arguments; all arguments of templates; scopes, the outermost
 * first. "std::_Rb_tree_iterator<...> std::map<K, V<T>>::find(K const&)" becomes "std::map<K,
 * V<..>>::find", then "std::map<..>::find", then "..map<..>::find".
 */
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "symbol.h"

#define ANONYMOUS "(anonymous namespace)"
#define CUT ".."
#define LEAST_ROOM 8 /* characters that a short name has at least */

/* The place in a name, and the brackets around it. */
struct label_reader {
	const char *at;
	int angles; /* depth of template arguments */
	int braces; /* depth of braces and square brackets: closures, arrays and the like */
	bool short_paths; /* leave modules out in Rust's first bracket */
};

/* The label being made. */
struct label_text {
	char *p;
	size_t len;
	size_t room;
};

static void put(struct label_text *label, const char *text, size_t len)
{
	if (len > label->room - label->len)
		len = label->room - label->len;
	memcpy(label->p + label->len, text, len);
	label->len += len;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

/* Takes the last word back, which was the name of a module. */
static void drop_word(struct label_text *label)
{
	while (label->len && is_word(label->p[label->len - 1]))
		label->len--;
}

/*
 * Returns the length of "operator<<" and the like, whose signs are no brackets; 0 if it is
 * something else.
 */
static size_t operator_length(const char *name, const char *at)
{
	const size_t word = strlen("operator");
	size_t n = word;

	if (strncmp(at, "operator", word) || is_word(at[word]) || (at > name && is_word(at[-1])))
		return 0;
	if (!strncmp(at + n, "()", 2) || !strncmp(at + n, "[]", 2))
		return n + 2;
	while (at[n] && strchr("<>=!+-*/%^&|~,", at[n]))
		n++;
	/* In "operator new" and "operator bool" the blank does not end a type. */
	return n == word && at[n] == ' ' ? n + 1 : n;
}

/* Returns the place behind the round brackets that begin at @at. */
static const char *skip_round(const char *at)
{
	int depth = 0;

	for (; *at; at++) {
		depth += (*at == '(') - (*at == ')');
		if (!depth)
			return at + 1;
	}
	return at;
}

/* Returns whether @at is what can follow a function's parameters: "const", "[clone .cold]". */
static bool is_tail(const char *at)
{
	static const char *const tails[] = { " const", " volatile", " &", " [", "&" };

	for (size_t i = 0; i < sizeof(tails) / sizeof(*tails); i++)
		if (!strncmp(at, tails[i], strlen(tails[i])))
			return true;
	return !*at;
}

/*
 * Copies or leaves out what is at the reader, and moves on. @keep is the depth of template
 * arguments that are kept. Rust's "<T as Trait>::f" begins with a bracket that is no argument.
 */
static void step(const char *name, struct label_reader *r, int keep, struct label_text *label)
{
	size_t n = operator_length(name, r->at);
	bool kept = r->angles <= keep;

	if (!n && !strncmp(r->at, ANONYMOUS, strlen(ANONYMOUS)))
		n = strlen(ANONYMOUS);
	if (n) {
		if (kept)
			put(label, r->at, n);
		r->at += n;
		return;
	}
	if (*r->at == '(') {
		r->at = skip_round(r->at);
		if (kept && r->angles)
			put(label, "(" CUT ")", strlen(CUT) + 2);
		if (is_tail(r->at) && !r->angles && !r->braces)
			r->at += strlen(r->at);
		return;
	}
	if (*r->at == '>' && r->at > name && r->at[-1] != '-' && r->angles > 0)
		kept = --r->angles <= keep;
	/* Old C++ writes a blank between two closing brackets. */
	if (*r->at == '>' && kept && label->len && label->p[label->len - 1] == ' ')
		label->len--;
	if (kept && !r->braces && !r->angles && *r->at == ' ' && r->at[1] != '<')
		label->len = 0; /* what came before was a type */
	else if (kept && r->short_paths && r->angles == 1 && !strncmp(r->at, "::", 2))
		drop_word(label);
	else if (kept && r->short_paths && r->angles == 1 && r->at > name && *r->at == ':')
		;
	else if (kept)
		put(label, r->at, 1);
	r->braces += (*r->at == '{' || *r->at == '[') - (*r->at == '}' || *r->at == ']');
	if (*r->at == '<' && ++r->angles > keep && kept)
		put(label, CUT, strlen(CUT));
	r->at++;
}

/*
 * Writes @name into @label with template arguments down to the depth @keep. With @short_paths,
 * module names in Rust's first bracket are left out.
 */
static void reduce(const char *name, int keep, bool short_paths, struct label_text *label)
{
	struct label_reader r = { .at = name, .short_paths = short_paths };

	label->len = 0;
	if (*name == '<')
		keep++;
	while (*r.at)
		step(name, &r, keep, label);
}

/* Returns the place behind the next "::" outside of brackets; NULL if there is none. */
static const char *next_scope(const char *at)
{
	const char *start = at;
	int depth = 0;

	for (; *at; at++) {
		depth += (*at == '<' || *at == '{') -
			 (*at == '}' || (*at == '>' && at > start && at[-1] != '-'));
		if (depth <= 0 && at[0] == ':' && at[1] == ':')
			return at + 2;
	}
	return NULL;
}

/* Replaces the outermost scopes by two dots, until the label fits into @room bytes. */
static void drop_scopes(struct label_text *label, size_t room)
{
	const char *from = label->p, *next;
	size_t len;

	label->p[label->len] = '\0';
	while ((size_t)(label->p + label->len - from) + strlen(CUT) > room &&
	       (next = next_scope(from)))
		from = next;
	if (from == label->p)
		return;
	len = label->p + label->len - from;
	if (len + strlen(CUT) > label->room)
		return;
	memmove(label->p + strlen(CUT), from, len);
	memcpy(label->p, CUT, strlen(CUT));
	label->len = len + strlen(CUT);
}

const char *shstk_label(const char *name, size_t room, char *buf, size_t size)
{
	const size_t len = strlen(name);
	struct label_text label = { .p = buf, .room = size - 1 };

	if (len <= room || len >= size)
		return name;
	for (int keep = 64; keep >= 0; keep = keep > 1 ? 1 : keep - 1) {
		reduce(name, keep, false, &label);
		if (label.len <= room)
			break;
	}
	if (label.len > room && *name == '<')
		reduce(name, 0, true, &label);
	if (label.len > room)
		drop_scopes(&label, room);
	buf[label.len] = '\0';
	/* A text of which nothing is left is no name. */
	return label.len ? buf : name;
}

static size_t characters(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

/* Returns the place behind the first @n characters. */
static const char *behind(const char *text, size_t n)
{
	for (; *text; text++)
		if ((*text & 0xc0) != 0x80 && !n--)
			break;
	return text;
}

const char *shstk_short_name(const char *name, size_t room, char *buf)
{
	const char *label, *tail;
	size_t all, keep, head;

	if (room < LEAST_ROOM)
		room = LEAST_ROOM;
	if (characters(name) <= room)
		return name;
	label = shstk_label(name, room, buf, SHSTK_LABEL_MAX);
	all = characters(label);
	if (all <= room)
		return label;
	keep = room - strlen(CUT);
	tail = behind(label, all - keep / 2);
	head = behind(label, keep - keep / 2) - label;
	if (head + strlen(CUT) + strlen(tail) >= SHSTK_LABEL_MAX)
		return label;
	memmove(buf, label, head);
	memmove(buf + head + strlen(CUT), tail, strlen(tail) + 1);
	memcpy(buf + head, CUT, strlen(CUT));
	return buf;
}
