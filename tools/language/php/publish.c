// SPDX-License-Identifier: GPL-2.0-or-later
/* publish.c - where PHP makes a frame the innermost one. See publish.h. */
#include <string.h>

#include "libshstk/unaligned.h"
#include "tools/language/php/publish.h"

#define MOST_CODE (16u << 20) /* bytes of code that are looked at */
#define PIECE 65536 /* bytes that are read at once */
#define LONGEST 8 /* bytes of such an instruction */

/* What is looked for: the address of the variable, and its offset in the structure. */
struct wanted {
	uint64_t current;
	uint32_t offset;
};

/*
 * Returns the length of an instruction that stores a register in the variable, which lies at an offset from another
 * register, or from the instruction's end (mov %r64,m64); 0: it is another one.
 */
static unsigned int stores(const uint8_t *code, uint64_t at, const struct wanted *w)
{
	const unsigned int mode = code[2] >> 6, base = code[2] & 7;

	if ((code[0] & 0xfa) != 0x48 || code[1] != 0x89)
		return 0;
	if (mode == 2 && base == 4)
		return get32(code + 4) == w->offset ? 8 : 0;
	if (mode == 2)
		return get32(code + 3) == w->offset ? 7 : 0;
	return !mode && base == 5 && get_relative(code + 3, at + 7) == w->current ? 7 : 0;
}

/* Notes the address behind an instruction. Returns false if there is no room for it. */
static bool note(struct language_found *ret, uint64_t at)
{
	if (language_runs_at(ret, at))
		return true;
	if (ret->nr_publishing == LANGUAGE_PUBLISHING)
		return false;
	ret->publishing[ret->nr_publishing++] = at;
	return true;
}

/* Looks at the instructions that begin in the first @nr bytes of @code. Returns false if there is no room. */
static bool look_at(const uint8_t *code, size_t nr, uint64_t at, const struct wanted *w,
		    struct language_found *ret)
{
	for (size_t i = 0; i < nr; i++) {
		const unsigned int length = code[i + 1] == 0x89 ? stores(code + i, at + i, w) : 0;

		if (length && !note(ret, at + i + length))
			return false;
	}
	return true;
}

static bool find_all(const struct language_module *m, uint64_t start, uint64_t size,
		     const struct wanted *w, struct language_found *ret)
{
	uint8_t code[PIECE + LONGEST];

	for (uint64_t at = 0; at < size; at += PIECE) {
		const uint64_t left = size - at;
		const size_t nr = left < sizeof(code) ? left : sizeof(code);

		/* No instruction goes on behind the end. */
		memset(code + nr, 0xff, sizeof(code) - nr);
		if (m->read(m->arg, start + at, code, nr) ||
		    !look_at(code, left < PIECE ? left : PIECE, start + at, w, ret))
			return false;
	}
	return true;
}

void php_find_publishing(const struct language_module *m, uint64_t start, uint64_t size,
			 uint64_t current, uint32_t offset, struct language_found *ret)
{
	const struct wanted w = { current, offset };

	ret->publishes = true;
	ret->nr_publishing = 0;
	if (!size || size > MOST_CODE || !find_all(m, start, size, &w, ret))
		ret->nr_publishing = LANGUAGE_PUBLISHING + 1;
}
