// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * haskell.c - readable names of functions that GHC compiled.
 *
 * A symbol has up to four parts between underscores: the package, which the program's own modules do not
 * have, the module, the function, and for one that its module does not export a number that makes the
 * symbol unique. A suffix says what the symbol is of the function. Letters that linkers may not know are
 * written as codes that begin with z or Z ("z-encoding"), underscores among them. They are a prefix code:
 * a symbol can be read in one way only, from left to right, each byte once.
 *
 * Each reader below consumes its part and appends the readable text. It returns false if the symbol does not
 * have that part, or there is no room.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "haskell.h"
#include "pool.h"

#define PARTS_MAX 4
#define TUPLE_MAX 64 /* GHC has no larger one */
#define POINT_DIGITS 7 /* of the largest code point, with the 0 that may be in front */

/**
 * struct zname - a symbol being read
 * @at: what is read next.
 * @end: end of the part that is read.
 * @text: the readable text.
 * @len: bytes in @text.
 * @max: bytes that @text has room for.
 */
struct zname {
	const char *at;
	const char *end;
	char *text;
	size_t len;
	size_t max;
};

/* The letters behind "z" and "Z", and what each of them stands for. */
static const char small[] = "abcdeghilmnpqrstuvz", small_meaning[] = "&|^$=>#.<-!+'\\/*_%z";
static const char large[] = "CLMNRZ", large_meaning[] = ":([])Z";

static bool put(struct zname *z, const char *text, size_t len)
{
	if (len > z->max - z->len)
		return false;
	memcpy(z->text + z->len, text, len);
	z->len += len;
	return true;
}

/* Returns what the letter stands for; 0: nothing. */
static char meaning_of(char letter, const char *letters, const char *meanings)
{
	const char *found = letter ? strchr(letters, letter) : NULL;

	return found ? meanings[found - letters] : 0;
}

/* Appends a character in UTF-8. Surrogates and control characters are none that a name has. */
static bool put_point(struct zname *z, uint32_t point)
{
	char bytes[4];
	size_t len = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;

	if (point <= ' ' || point == 0x7f || point > 0x10ffff ||
	    (point >= 0xd800 && point < 0xe000))
		return false;
	if (len == 1)
		bytes[0] = (char)point;
	else
		bytes[0] = (char)((0xf00 >> len & 0xff) | point >> 6 * (len - 1));
	for (size_t i = 1; i < len; i++)
		bytes[i] = (char)(0x80 | (point >> 6 * (len - 1 - i) & 0x3f));
	return put(z, bytes, len);
}

/* Reads the rest of a code that has a character's number: hexadecimal digits and U. */
static bool read_point(struct zname *z)
{
	uint32_t point = 0;
	int digits = 0;

	for (; z->at < z->end && digits <= POINT_DIGITS; z->at++, digits++) {
		const char c = *z->at;

		if (c == 'U') {
			z->at++;
			return digits && put_point(z, point);
		}
		if (!isdigit((unsigned char)c) && (c < 'a' || c > 'f'))
			return false;
		point = point << 4 | (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	return false;
}

/* Reads the rest of a code that has a tuple: the number of its members, and T, or H for an unboxed one. */
static bool read_tuple(struct zname *z)
{
	unsigned int members = 0;
	bool boxed;

	for (; z->at < z->end && isdigit((unsigned char)*z->at) && members <= TUPLE_MAX; z->at++)
		members = 10 * members + (unsigned int)(*z->at - '0');
	if (members > TUPLE_MAX || z->at == z->end || (*z->at != 'T' && *z->at != 'H'))
		return false;
	boxed = *z->at++ == 'T';
	if (!put(z, "(#", boxed ? 1 : 2))
		return false;
	for (unsigned int i = 1; i < members; i++)
		if (!put(z, ",", 1))
			return false;
	/* An unboxed tuple of one has a blank in it, as "(##)" is an operator. */
	return (boxed || members != 1 || put(z, " ", 1)) &&
	       (boxed ? put(z, ")", 1) : put(z, "#)", 2));
}

/* Reads a code, whose first letter, z or Z, was read. */
static bool read_code(struct zname *z, bool is_large)
{
	char meaning;

	if (z->at == z->end)
		return false;
	if (isdigit((unsigned char)*z->at))
		return is_large ? read_tuple(z) : read_point(z);
	meaning = is_large ? meaning_of(*z->at, large, large_meaning) :
			     meaning_of(*z->at, small, small_meaning);
	z->at++;
	return meaning && put(z, &meaning, 1);
}

/* Reads the letters from @from up to @end. */
static bool read_part(struct zname *z, const char *from, const char *end)
{
	z->end = end;
	for (z->at = from; z->at < end;) {
		const char c = *z->at++;

		if (c == 'z' || c == 'Z' ? !read_code(z, c == 'Z') :
					   !isalnum((unsigned char)c) || !put(z, &c, 1))
			return false;
	}
	return end > from;
}

/* Returns whether a text is a module's name: names with a capital first, between dots; or that of main(). */
static bool is_module(const char *text, size_t len)
{
	bool first = true;

	if (len == 5 && !memcmp(text, ":Main", 5))
		return true;
	for (size_t i = 0; i < len; i++) {
		const unsigned char c = text[i];

		if (first ? !isupper(c) && c < 0x80 :
			    !isalnum(c) && c < 0x80 && c != '_' && c != '\'' && c != '.')
			return false;
		first = c == '.';
	}
	return !first;
}

/* Reads a part that has to be a module. */
static bool read_module(struct zname *z, const char *from, const char *end)
{
	const size_t begin = z->len;

	if (read_part(z, from, end) && is_module(z->text + begin, z->len - begin))
		return true;
	z->len = begin;
	return false;
}

/* Returns where the suffix of a function's symbol begins; NULL if it has none. */
static const char *suffix_of(const char *name, size_t len)
{
	static const char *const suffixes[] = { "_con_info", "_con_entry", "_static_info",
						"_info",     "_entry",	   "_slow" };

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		const size_t n = strlen(suffixes[i]);

		if (len > n && !memcmp(name + len - n, suffixes[i], n))
			return name + len - n;
	}
	return NULL;
}

/*
 * Finds the parts up to @end. Each one of @parts receives where it begins, and the one behind the last
 * where it would. Returns their number; 0: there are too many.
 */
static unsigned int split(const char *name, const char *end, const char **parts)
{
	unsigned int nr = 0;
	const char *at = name;

	while (at && at <= end) {
		if (nr == PARTS_MAX)
			return 0;
		parts[nr++] = at;
		at = memchr(at, '_', end - at);
		at = at ? at + 1 : NULL;
	}
	parts[nr] = end + 1;
	return nr;
}

bool shstk_is_haskell_runtime(const char *name)
{
	const size_t len = strncmp(name, "stg_", 4) ? 0 : strlen(name);

	return len > 9 && !strcmp(name + len - 5, "_info");
}

bool shstk_haskell(const char *name, char *text, size_t max, size_t *len)
{
	const char *parts[PARTS_MAX + 1], *end = suffix_of(name, strlen(name));
	struct zname z = { .text = text, .max = max };
	unsigned int nr = end ? split(name, end, parts) : 0, module = 0;

	if (nr < 2)
		return false;
	if (!read_module(&z, parts[0], parts[1] - 1)) {
		module = 1;
		if (nr < 3 || !read_module(&z, parts[1], parts[2] - 1))
			return false;
	}
	/* Behind the function one part may follow, which makes the symbol unique. */
	if (nr - module > 3 || !put(&z, ".", 1) ||
	    !read_part(&z, parts[module + 1], parts[module + 2] - 1))
		return false;
	*len = z.len;
	return true;
}

const char *shstk_haskell_name(struct shstk_pool *pool, const char *name)
{
	char *text = malloc(SHSTK_TEXT_MAX);
	const char *ret = NULL;
	size_t len;

	if (text && shstk_haskell(name, text, SHSTK_TEXT_MAX, &len))
		ret = shstk_pool_text(pool, text, len);
	free(text);
	return ret;
}
