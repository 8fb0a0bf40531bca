/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* unaligned.h - reads numbers of this machine's byte order from any address. */
#ifndef SHSTK_UNALIGNED_H
#define SHSTK_UNALIGNED_H

#include <stdint.h>
#include <string.h>

static inline uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Returns the address that a signed distance of 32 bits leads to from another one. */
static inline uint64_t get_relative(const uint8_t *p, uint64_t from)
{
	return from + (uint64_t)(int64_t)(int32_t)get32(p);
}

#endif
