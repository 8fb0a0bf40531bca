/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * plain.h - the part of native.h that is the same where return addresses are not signed.
 */
#ifndef SHSTK_ARCH_PLAIN_H
#define SHSTK_ARCH_PLAIN_H

#include <stdint.h>

static inline uint64_t native_strip(uint64_t ra)
{
	return ra;
}

static inline uint64_t native_pac_mask(void)
{
	return 0;
}

/* Returns the mask of the bits of a return address that are the address. */
static inline uint64_t native_pc_mask(void)
{
	return ~0ull;
}

#endif
