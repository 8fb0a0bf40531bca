/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * meant.h - return addresses that stand for others.
 *
 * Who puts an address of his own in the place of a return address, as markers do
 * (libshstk/marker/), says here what it stands for. A walk asks where a word of the stack, or a
 * register, becomes the address of a frame (source_walk.c). The fast loops need not: they only
 * pass addresses that have a rule in the cache, which such an address never gets.
 */
#ifndef SHSTK_MEANT_H
#define SHSTK_MEANT_H

#include "cfi.h"

/*
 * The address that @pc stands for; @pc itself if it is an ordinary one. @regs are NULL, or all
 * registers of code that was interrupted at @pc: if that is about to return to another address,
 * they become what they will be then. Async-signal-safe.
 */
typedef uint64_t (*meant_fn)(uint64_t pc, struct regs *regs);

/* NULL until somebody replaces return addresses; set once. */
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
