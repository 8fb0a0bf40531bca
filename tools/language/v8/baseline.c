// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * baseline.c - at which bytecode code of V8's first compiler (Sparkplug) is.
 *
 * That compiler makes the code of one bytecode after the other. Its table has how many bytes of code come
 * first, and how many each bytecode has. Which bytecodes these are says the function's bytecode itself.
 *
 * All of it was copied from the memory of a process, which may hold anything.
 */
#include "tools/language/v8/v8.h"

#define PREFIXES 4 /* the first bytecodes have the operands of the next one be wider */

/* Returns how many bytes the bytecode at an offset has, with its prefix; 0: it does not end there. */
static size_t size_of(const struct v8_copied_baseline *c, size_t at)
{
	const uint8_t *bytecodes = c->bytecodes;
	const bool prefix = bytecodes[at] < PREFIXES;
	const size_t width = !prefix ? 1 : bytecodes[at] % 2 ? 4 : 2, first = at + prefix;
	size_t ret;

	if (first >= c->size || bytecodes[first] >= c->version->nr_bytecodes)
		return 0;
	ret = c->version->bytecodes[bytecodes[first]];
	ret = prefix + ret / 8 + width * (ret % 8);
	return ret <= c->size - at ? ret : 0;
}

size_t v8_baseline(const struct v8_copied_baseline *c, struct v8_position *ret)
{
	size_t at = 0, nr = 0, bytecode = 0, step;
	uint64_t offset = 0;
	uint32_t bytes;

	for (; v8_number(c->table, c->table_size, &at, &bytes); offset += bytes) {
		if (ret)
			ret[nr] = (struct v8_position){
				.offset = (uint32_t)offset,
				.at = nr ? (int32_t)bytecode : -1,
			};
		/* What comes first is of no bytecode. */
		if (!nr++)
			continue;
		step = bytecode < c->size ? size_of(c, bytecode) : 0;
		if (!step)
			return 0;
		bytecode += step;
	}
	return at == c->table_size && bytecode == c->size ? nr : 0;
}
