/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * shadow.h - tells what the words of a riscv shadow stack are. Sources: Zicfiss,
 * arch/riscv/kernel/usercfi.c, signal.c.
 */
#ifndef SHSTK_RISCV_SHADOW_H
#define SHSTK_RISCV_SHADOW_H

#include "machine.h"

/*
 * Tells what the word @v at @addr is. A restore token holds the address behind itself. The
 * kernel pushes a token in front of a signal. The token of a stack that was left lies below
 * the entries of that stack, so it is not met.
 */
static inline enum shadow_entry riscv_shadow_entry(uint64_t v, uint64_t addr)
{
	if (v < SHADOW_LEAST)
		return SHADOW_END;
	if (v == addr + 8)
		return SHADOW_SIGNAL;
	return v >> 56 ? SHADOW_FOREIGN : SHADOW_RETURN_ADDRESS;
}

#endif
