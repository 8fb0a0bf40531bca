// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * positions.c - V8's tables of positions: which character of a script code is made of.
 *
 * Each element has the distance to the one before, of the offset in the code and of the position,
 * in as few bytes of seven bits as it needs. All of it was copied from the memory of a process,
 * which may hold anything.
 */
#include "tools/language/v8/v8.h"

#define MORE 0x80 /* another byte follows */
#define MOST_BITS 63
#define NUMBER_BITS 32 /* of a number without a sign */

#define OUTSIDE 1 /* bit of a position: it is in no script */
#define AT_SHIFT 1 /* number of the character, plus 1 */
#define AT_MASK 0x3fffffff
#define CALL_SHIFT 31 /* index of the inlined call, plus 1 */
#define CALL_MASK 0xffff

/* Reads a number. Returns false if the bytes end within it. */
static bool read_number(const uint8_t **at, const uint8_t *end, int64_t *ret)
{
	uint64_t bits = 0;
	unsigned int shift = 0;

	while (*at < end) {
		const uint8_t byte = *(*at)++;

		if (shift <= MOST_BITS)
			bits |= (uint64_t)(byte & ~MORE) << shift;
		shift += 7;
		if (byte & MORE)
			continue;
		*ret = (int64_t)((bits >> 1) ^ -(bits & 1));
		return true;
	}
	return false;
}

bool v8_number(const uint8_t *bytes, size_t size, size_t *at, uint32_t *ret)
{
	*ret = 0;
	for (unsigned int shift = 0; shift < NUMBER_BITS && *at < size; shift += 7) {
		const uint8_t byte = bytes[(*at)++];

		*ret |= (uint32_t)(byte & ~MORE) << shift;
		if (!(byte & MORE))
			return true;
	}
	return false;
}

struct v8_position v8_position(uint64_t word)
{
	const int32_t at = (int32_t)(word >> AT_SHIFT & AT_MASK) - 1;

	return (struct v8_position){
		.at = word & OUTSIDE ? -1 : at,
		.call = (int32_t)(word >> CALL_SHIFT & CALL_MASK) - 1,
	};
}

size_t v8_positions(const uint8_t *bytes, size_t size, struct v8_position *ret)
{
	const uint8_t *end = bytes + size;
	/* The distance of the first element is that to -1 (kFunctionEntryBytecodeOffset). */
	uint64_t offset = -1, word = 0;
	int64_t step, more;
	size_t nr = 0;

	while (read_number(&bytes, end, &step) && read_number(&bytes, end, &more)) {
		/* A negative one is that of an expression. */
		offset += step < 0 ? -(uint64_t)(step + 1) : (uint64_t)step;
		word += (uint64_t)more;
		if (ret) {
			ret[nr] = v8_position(word);
			ret[nr].offset = (uint32_t)offset;
		}
		nr++;
	}
	return nr;
}
