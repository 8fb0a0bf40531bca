/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* cfi_bytes.h - reads numbers from untrusted bytes, never beyond their end. */
#ifndef SHSTK_CFI_BYTES_H
#define SHSTK_CFI_BYTES_H

#include "internal.h"

/**
 * struct bytes - bytes that were not read yet
 * @p: the next byte.
 * @end: first address behind the last byte.
 * @bad: more bytes were asked for than there are; from then on all numbers read are 0.
 */
struct bytes {
	const uint8_t *p, *end;
	bool bad;
};

/* Reads an unsigned little-endian number of @size bytes, at most 8. */
static inline uint64_t bytes_fixed(struct bytes *b, unsigned int size)
{
	uint64_t v = 0;

	if ((size_t)(b->end - b->p) < size) {
		b->bad = true;
		b->p = b->end;
		return 0;
	}
	memcpy(&v, b->p, size);
	b->p += size;
	return v;
}

static inline int64_t bytes_signed(struct bytes *b, unsigned int size)
{
	unsigned int shift = 64 - 8 * size;

	return (int64_t)(bytes_fixed(b, size) << shift) >> shift;
}

/* Reads an unsigned LEB128 number. Bits above bit 63 are dropped. */
static inline uint64_t bytes_uleb(struct bytes *b)
{
	unsigned int shift = 0;
	uint64_t v = 0;

	for (;;) {
		uint8_t byte = bytes_fixed(b, 1);

		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (!(byte & 0x80) || b->bad)
			return v;
	}
}

/* Reads a signed LEB128 number. Bits above bit 63 are dropped. */
static inline int64_t bytes_sleb(struct bytes *b)
{
	unsigned int shift = 0;
	uint64_t v = 0;
	uint8_t byte;

	do {
		byte = bytes_fixed(b, 1);
		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && !b->bad);
	if (shift < 64 && byte & 0x40)
		v |= ~0ull << shift;
	return v;
}

static inline void bytes_skip(struct bytes *b, uint64_t len)
{
	if (len > (size_t)(b->end - b->p)) {
		b->bad = true;
		b->p = b->end;
	} else {
		b->p += len;
	}
}

#endif
