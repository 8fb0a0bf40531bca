/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * shadow.h - tells what the words of an arm64 shadow stack are. Sources: Arm ARM D11
 * (Guarded Control Stack), arch/arm64/mm/gcs.c.
 */
#ifndef SHSTK_ARM64_SHADOW_H
#define SHSTK_ARM64_SHADOW_H

#include "machine.h"

/*
 * Tells what the word @v at @addr is. A cap holds the address of the page that it lies in.
 * Its low bits are 0 for a cap in front of a signal, 1 for a valid cap, 5 for a cap of a
 * switch in progress.
 */
static inline enum shadow_entry arm64_shadow_entry(uint64_t v, uint64_t addr)
{
	if (v < SHADOW_LEAST)
		return SHADOW_END;
	if ((v ^ addr) & ~0xfffull)
		return v >> 55 ? SHADOW_FOREIGN : SHADOW_RETURN_ADDRESS;
	return v & 0xfff ? SHADOW_TOKEN : SHADOW_SIGNAL;
}

#endif
