// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * shorten.c - names of C++ functions as programmers write them: without the default arguments of
 * the standard library's templates, without its inline namespaces, and with std::string instead of
 * std::basic_string.
 *
 * Only arguments that equal the default are left out: a vector with another allocator keeps it. A
 * name whose brackets do not match stays as it is.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "pool.h"
#include "shorten.h"

#define ARGS_MAX 16
#define DEFAULTS_MAX 3
#define NESTING_MAX 32
#define BRACKETS_MAX 128

struct name_span {
	const char *p;
	size_t len;
};

/* The text being made. */
struct short_name {
	char *p;
	size_t len;
};

/* Returns the bytes that a name of @len bytes can become: ">>" and "," may get a blank. */
static size_t longest(size_t len)
{
	return 2 * len + 1;
}

/*
 * Templates of the standard library: @needed is how many arguments are always written, @defaults
 * are the defaults of the others. $0 and $1 are the first two arguments.
 */
static const struct template
{
	const char *name;
	unsigned int needed;
	const char *defaults[DEFAULTS_MAX];
}
templates[] = {
	{ "vector", 1, { "std::allocator<$0>" } },
	{ "deque", 1, { "std::allocator<$0>" } },
	{ "list", 1, { "std::allocator<$0>" } },
	{ "forward_list", 1, { "std::allocator<$0>" } },
	{ "set", 1, { "std::less<$0>", "std::allocator<$0>" } },
	{ "multiset", 1, { "std::less<$0>", "std::allocator<$0>" } },
	{ "map", 2, { "std::less<$0>", "std::allocator<std::pair<$0 const, $1>>" } },
	{ "multimap", 2, { "std::less<$0>", "std::allocator<std::pair<$0 const, $1>>" } },
	{ "unordered_set", 1, { "std::hash<$0>", "std::equal_to<$0>", "std::allocator<$0>" } },
	{ "unordered_multiset", 1, { "std::hash<$0>", "std::equal_to<$0>", "std::allocator<$0>" } },
	{ "unordered_map",
	  2,
	  { "std::hash<$0>", "std::equal_to<$0>", "std::allocator<std::pair<$0 const, $1>>" } },
	{ "unordered_multimap",
	  2,
	  { "std::hash<$0>", "std::equal_to<$0>", "std::allocator<std::pair<$0 const, $1>>" } },
	{ "unique_ptr", 1, { "std::default_delete<$0>" } },
	{ "stack", 1, { "std::deque<$0>" } },
	{ "queue", 1, { "std::deque<$0>" } },
	{ "priority_queue", 1, { "std::vector<$0>", "std::less<$0>" } },
	{ "basic_string", 1, { "std::char_traits<$0>", "std::allocator<$0>" } },
	{ "basic_string_view", 1, { "std::char_traits<$0>" } },
	{ "basic_ios", 1, { "std::char_traits<$0>" } },
	{ "basic_streambuf", 1, { "std::char_traits<$0>" } },
	{ "basic_istream", 1, { "std::char_traits<$0>" } },
	{ "basic_ostream", 1, { "std::char_traits<$0>" } },
	{ "basic_iostream", 1, { "std::char_traits<$0>" } },
	{ "basic_filebuf", 1, { "std::char_traits<$0>" } },
	{ "basic_ifstream", 1, { "std::char_traits<$0>" } },
	{ "basic_ofstream", 1, { "std::char_traits<$0>" } },
	{ "basic_fstream", 1, { "std::char_traits<$0>" } },
	{ "basic_stringbuf", 1, { "std::char_traits<$0>", "std::allocator<$0>" } },
	{ "basic_istringstream", 1, { "std::char_traits<$0>", "std::allocator<$0>" } },
	{ "basic_ostringstream", 1, { "std::char_traits<$0>", "std::allocator<$0>" } },
	{ "basic_stringstream", 1, { "std::char_traits<$0>", "std::allocator<$0>" } },
};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool begins(const char *p, const char *end, const char *with)
{
	size_t len = strlen(with);

	return (size_t)(end - p) >= len && !memcmp(p, with, len);
}

static void put(struct short_name *out, const char *p, size_t len)
{
	memcpy(out->p + out->len, p, len);
	out->len += len;
}

/* Returns the name behind "std::" and behind an inline namespace of libstdc++ or libc++. */
static const char *skip_std(const char *p, const char *end)
{
	static const char *const hidden[] = { "__cxx11::", "__1::" };

	p += strlen("std::");
	for (size_t i = 0; i < sizeof(hidden) / sizeof(*hidden); i++)
		if (begins(p, end, hidden[i]))
			return p + strlen(hidden[i]);
	return p;
}

static const struct template *find_template(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(templates) / sizeof(*templates); i++)
		if (strlen(templates[i].name) == len && !memcmp(templates[i].name, name, len))
			return &templates[i];
	return NULL;
}

/* Returns whether the angle bracket at @p is part of an operator's name, or of an arrow. */
static bool is_operator(const char *start, const char *p)
{
	static const char word[] = "operator";

	if (*p == '>' && p > start && p[-1] == '-')
		return true;
	while (p > start && strchr("<>=-", p[-1]))
		p--;
	return (size_t)(p - start) >= strlen(word) && !memcmp(p - strlen(word), word, strlen(word));
}

/*
 * Finds the arguments of a template; @p is behind its '<'. Fills @args, and sets @after behind the
 * '>'. Returns the number of arguments; -1 if there are too many, or the brackets do not match. A
 * '<' in round brackets may be a comparison, so it ends with the brackets.
 */
static int split(const char *p, const char *end, struct name_span *args, const char **after)
{
	char open[BRACKETS_MAX];
	const char *start = p, *from = p;
	unsigned int depth = 0;
	int n = 0;

	for (; p < end; p++) {
		if (strchr("<([{", *p)) {
			if (*p == '<' && is_operator(start, p))
				continue;
			if (depth == BRACKETS_MAX)
				return -1;
			open[depth++] = *p;
		} else if (strchr(")]}", *p)) {
			while (depth && open[depth - 1] == '<')
				depth--;
			if (!depth--)
				return -1;
		} else if (*p == '>' && !is_operator(start, p) && depth) {
			if (open[depth - 1] == '<')
				depth--;
		} else if ((*p == ',' && !depth) || (*p == '>' && !is_operator(start, p))) {
			if (n == ARGS_MAX)
				return -1;
			args[n++] = (struct name_span){ from, p - from };
			from = p + 1;
			if (*p == '>') {
				*after = from;
				return n;
			}
		}
	}
	return -1;
}

static struct name_span trim(struct name_span s)
{
	while (s.len && *s.p == ' ')
		s.p++, s.len--;
	while (s.len && s.p[s.len - 1] == ' ')
		s.len--;
	return s;
}

/* Returns whether @arg is the default that @pattern describes. Blanks between '>'s do not count. */
static bool is_default(const char *pattern, struct name_span arg, const struct name_span *args,
		       int nr)
{
	const char *p = arg.p, *end = arg.p + arg.len;

	for (; *pattern; pattern++) {
		if (*pattern == '$') {
			int n = *++pattern - '0';

			if (n >= nr || (size_t)(end - p) < args[n].len ||
			    memcmp(p, args[n].p, args[n].len))
				return false;
			p += args[n].len;
			continue;
		}
		if (*pattern == '>' && end - p > 1 && *p == ' ')
			p++;
		if (p == end || *p++ != *pattern)
			return false;
	}
	return p == end;
}

/* Returns how many of the arguments have to be written. */
static int needed_args(const struct template *t, const struct name_span *args, int nr)
{
	int defaults = 0;

	while (defaults < DEFAULTS_MAX && t->defaults[defaults])
		defaults++;
	if (nr != (int)t->needed + defaults)
		return nr;
	while (nr > (int)t->needed &&
	       is_default(t->defaults[nr - t->needed - 1], args[nr - 1], args, t->needed))
		nr--;
	return nr;
}

/*
 * Writes the typedef that the standard has for characters, such as std::string or std::wostream.
 * Returns false if there is none.
 */
static bool put_alias(struct short_name *out, const struct template *t,
		      const struct name_span *args, int nr)
{
	static const char basic[] = "basic_";
	bool narrow = args[0].len == 4 && !memcmp(args[0].p, "char", 4);
	bool wide = args[0].len == 7 && !memcmp(args[0].p, "wchar_t", 7);

	if (nr != 1 || !(narrow || wide) || strncmp(t->name, basic, strlen(basic)))
		return false;
	if (wide)
		put(out, "w", 1);
	put(out, t->name + strlen(basic), strlen(t->name + strlen(basic)));
	return true;
}

static bool shorten(const char *p, const char *end, struct short_name *out, int nesting);

static void put_args(struct short_name *out, const struct name_span *args, int nr)
{
	for (int i = 0; i < nr; i++) {
		put(out, i ? ", " : "<", i ? 2 : 1);
		put(out, args[i].p, args[i].len);
	}
	if (out->p[out->len - 1] == '>')
		put(out, " ", 1);
	put(out, ">", 1);
}

/*
 * Writes the template @t with its arguments from @p on, and sets *@after behind them. The arguments
 * are shortened first, in memory of their own, because only then can they be compared. Returns
 * false if they cannot be understood.
 */
static bool put_template(const struct template *t, const char *p, const char *end,
			 struct short_name *out, int nesting, const char **after)
{
	struct name_span args[ARGS_MAX];
	int nr = split(p, end, args, after);
	struct short_name made = { NULL, 0 };
	bool ok;

	if (nr < 0)
		return false;
	made.p = malloc(longest(*after - p));
	ok = made.p;
	for (int i = 0; ok && i < nr; i++) {
		struct name_span arg = trim(args[i]);
		size_t from = made.len;

		ok = shorten(arg.p, arg.p + arg.len, &made, nesting + 1);
		args[i] = (struct name_span){ made.p + from, made.len - from };
	}
	if (ok) {
		nr = needed_args(t, args, nr);
		if (!put_alias(out, t, args, nr)) {
			put(out, t->name, strlen(t->name));
			put_args(out, args, nr);
		}
	}
	free(made.p);
	return ok;
}

/* Appends the text from @p to @end, shortened. Returns false if it cannot be understood. */
static bool shorten(const char *p, const char *end, struct short_name *out, int nesting)
{
	const struct template *t;
	const char *name, *start = p;

	if (nesting > NESTING_MAX)
		return false;
	while (p < end) {
		if (!begins(p, end, "std::") || (p > start && (is_word(p[-1]) || p[-1] == ':'))) {
			put(out, p++, 1);
			continue;
		}
		put(out, "std::", 5);
		p = name = skip_std(p, end);
		while (p < end && is_word(*p))
			p++;
		t = p < end && *p == '<' ? find_template(name, p - name) : NULL;
		if (!t)
			put(out, name, p - name);
		else if (!put_template(t, p + 1, end, out, nesting, &p))
			return false;
		else if (begins(p, end, " >") && out->p[out->len - 1] != '>')
			p++; /* the blank was between two '>'s */
	}
	return true;
}

const char *shstk_shorten(struct shstk_pool *pool, const char *name, size_t len)
{
	struct short_name out = { malloc(longest(len)), 0 };
	const char *text;

	if (out.p && shorten(name, name + len, &out, 0))
		text = shstk_pool_text(pool, out.p, out.len);
	else
		text = shstk_pool_text(pool, name, len);
	free(out.p);
	return text;
}
