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

#endif
