/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * shadow.h - tells what the words of an x86 shadow stack are. Sources: Intel SDM volume 1
 * chapter 17, arch/x86/kernel/shstk.c.
 */
#ifndef SHSTK_X86_SHADOW_H
#define SHSTK_X86_SHADOW_H

#include "machine.h"

/*
 * Tells what the word @v at @addr is. The token of a signal is the interrupted SSP with
 * bit 63 set. A restore token holds the address behind itself, with bit 0 set (64-bit
 * mode).
 */
static inline enum shadow_entry x86_shadow_entry(uint64_t v, uint64_t addr)
{
	uint64_t ssp = v & ~(1ull << 63);

	if (v >> 63 && ssp >= addr && !(ssp & 7) && !(ssp >> 56))
		return SHADOW_SIGNAL;
	if (v < SHADOW_LEAST)
		return SHADOW_END;
	if (v == ((addr + 8) | 1))
		return SHADOW_TOKEN;
	return v >> 56 ? SHADOW_FOREIGN : SHADOW_RETURN_ADDRESS;
}

#endif
