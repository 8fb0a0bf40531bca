/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stack_pointer.h - which of a machine's registers is the stack pointer. */
#ifndef TOOLS_STACK_POINTER_H
#define TOOLS_STACK_POINTER_H

#include <stdint.h>

#include "libshstk/shstk.h"

/* Returns the stack pointer; @arch: enum shstk_arch. */
static inline uint64_t stack_pointer(int arch, const struct shstk_regs *regs)
{
	static const uint8_t numbers[] = {
		[SHSTK_ARCH_X86] = 7,
		[SHSTK_ARCH_ARM64] = 31,
		[SHSTK_ARCH_RISCV] = 2,
	};

	return regs->r[numbers[arch]];
}

#endif
