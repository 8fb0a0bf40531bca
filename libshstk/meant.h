/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * meant.h - return addresses that stand for other addresses.
 *
 * Code that replaces return addresses on the stack, as markers do (libshstk/marker/), says here
 * what they stand for. A walk asks whenever a word of the stack, or a register, becomes the address
 * of a frame (source_walk.c). The fast loops need not ask: they only pass addresses that have a
 * rule in the cache, and an address that stands for another one never gets a rule there.
 */
#ifndef SHSTK_MEANT_H
#define SHSTK_MEANT_H

#include "cfi.h"

/*
 * Returns the address that @pc stands for, or @pc itself if it is an ordinary address. @regs is
 * NULL, or all registers of code that was interrupted at @pc. If that code is about to return to
 * another address, @regs receive the values that they will have then. Async-signal-safe.
 */
typedef uint64_t (*meant_fn)(uint64_t pc, struct regs *regs);

/*
 * The function of the code that replaces return addresses; NULL as long as there is none. It is set
 * only once.
 */
extern meant_fn meant_by __attribute__((visibility("hidden")));

static inline uint64_t meant_pc(uint64_t pc)
{
	meant_fn fn = load_acquire(&meant_by);

	return unlikely(fn) ? fn(pc, NULL) : pc;
}

static inline void meant_regs(struct regs *regs)
{
	meant_fn fn = load_acquire(&meant_by);

	if (unlikely(fn))
		regs->r[REG_PC] = fn(regs->r[REG_PC], regs);
}

#endif
