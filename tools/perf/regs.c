// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * regs.c - converts the registers of perf events, PERF_REG_X86_* and PERF_REG_ARM64_*, to those of
 * struct shstk_regs.
 */
#include "tools/perf/regs.h"

#define THE_PC -2

uint64_t perf_regs_wanted(void)
{
#ifdef __aarch64__
	return (1ull << 33) - 1; /* x0 to x29, lr, sp, pc */
#else
	return 0xff01ff; /* ax to ip; r8 to r15 */
#endif
}

int perf_regs_arch(void)
{
#ifdef __aarch64__
	return SHSTK_ARCH_ARM64;
#else
	return SHSTK_ARCH_X86;
#endif
}

void perf_regs_set(int arch, unsigned int n, uint64_t value, struct shstk_regs *regs)
{
	static const int8_t x86[] = { 0,  3,  2,  1,  4, 5, 6,	7,  THE_PC, -1, -1, -1,
				      -1, -1, -1, -1, 8, 9, 10, 11, 12,	    13, 14, 15 };
	int to = -1;

	if (arch == SHSTK_ARCH_X86)
		to = n < sizeof(x86) ? x86[n] : -1;
	else if (arch == SHSTK_ARCH_ARM64)
		to = n < 32 ? (int)n : n == 32 ? THE_PC : -1;
	if (to == THE_PC)
		regs->pc = value;
	if (to < 0)
		return;
	regs->r[to] = value;
	regs->known |= 1u << to;
}
