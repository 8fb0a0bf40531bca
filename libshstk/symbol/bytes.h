/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * bytes.h - readers of little-endian numbers in foreign bytes.
 *
 * Each reader returns false if the bytes end before its number does; otherwise it consumes at least
 * one byte.
 */
#ifndef SHSTK_SYMBOL_BYTES_H
#define SHSTK_SYMBOL_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "elf_file.h"

/* Passes over @n bytes. */
static inline bool bytes_skip(struct shstk_bytes *from, uint64_t n)
{
	if ((uint64_t)(from->end - from->p) < n)
		return false;
	from->p += n;
	return true;
}

/* Reads a number of @size bytes, at most 8. */
static inline bool bytes_fixed(struct shstk_bytes *from, unsigned int size, uint64_t *ret)
{
	const uint8_t *p = from->p;

	*ret = 0;
	if (!bytes_skip(from, size))
		return false;
	memcpy(ret, p, size);
	return true;
}

/* Reads an unsigned LEB128 number. Bits beyond the 64th are dropped. */
static inline bool bytes_uleb(struct shstk_bytes *from, uint64_t *ret)
{
	unsigned int shift = 0;
	uint8_t byte;

	*ret = 0;
	do {
		if (from->p == from->end)
			return false;
		byte = *from->p++;
		if (shift < 64)
			*ret |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return true;
}

/* Reads a signed LEB128 number. Bits beyond the 64th are dropped. */
static inline bool bytes_sleb(struct shstk_bytes *from, int64_t *ret)
{
	unsigned int shift = 0;
	uint64_t v = 0;
	uint8_t byte;

	do {
		if (from->p == from->end)
			return false;
		byte = *from->p++;
		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (shift < 64 && byte & 0x40)
		v |= ~0ull << shift;
	*ret = v;
	return true;
}

/*
 * Reads the length that begins a unit or a table, which has 32 or (@wide) 64 bits, and sets @ret to
 * the bytes that it covers.
 */
static inline bool bytes_unit(struct shstk_bytes *from, bool *wide, struct shstk_bytes *ret)
{
	uint64_t length;

	if (!bytes_fixed(from, 4, &length))
		return false;
	*wide = length == UINT32_MAX;
	if (*wide && !bytes_fixed(from, 8, &length))
		return false;
	*ret = *from;
	if (!bytes_skip(from, length))
		return false;
	ret->end = from->p;
	return true;
}

#endif /* SHSTK_SYMBOL_BYTES_H */
