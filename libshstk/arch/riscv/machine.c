// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * machine.c - describes riscv64 for the unwinder: register numbers of the ELF psABI, the
 * signal frame of arch/riscv/include/uapi/asm/ucontext.h, and how to recognise calls.
 */
#include <elf.h>

#include "shadow.h"

enum { RA = 1, SP = 2, FP = 8 };

/* Recognises li a7, __NR_rt_sigreturn; ecall (arch/riscv/kernel/vdso/rt_sigreturn.S). */
static bool is_sigtramp(const uint8_t *code, size_t len)
{
	static const uint8_t bytes[] = { 0x93, 0x08, 0xb0, 0x08, 0x73, 0, 0, 0 };

	return len >= sizeof(bytes) && !memcmp(code, bytes, sizeof(bytes));
}

/*
 * Returns where register @reg lies in struct rt_sigframe, or -1. That is a siginfo (128
 * bytes) and a ucontext, whose uc_mcontext begins after 176 bytes: pc, x1 to x31.
 */
static int sigframe_offset(unsigned int reg)
{
	if (reg == REG_PC)
		return 128 + 176;
	return reg ? 128 + 176 + 8 * (int)reg : -1;
}

/*
 * Tells whether the code ends with a call: jal ra, jalr ra or c.jalr. Calls with the other link
 * register, t0, do not count: they are for millicode.
 */
static bool after_call(const uint8_t *code, size_t len)
{
	const uint8_t *p = code + len;
	uint32_t v;

	if (len >= 2 && p[-1] >> 4 == 9 && !((p[-2] | p[-1] << 8) & 0x7c) &&
	    (p[-2] | p[-1] << 8) & 0xf80 && (p[-2] & 3) == 2)
		return true;
	if (len < 4)
		return false;
	memcpy(&v, p - 4, sizeof(v));
	return (v & 0xfff) == 0x0ef || (v & 0x7fff) == 0x00e7;
}

/*
 * Decodes nothing: on riscv epilogues are not followed, so a walk ends at code without unwind
 * information.
 */
static bool decode(const uint8_t *code, size_t len, uint64_t pc, struct effect *e)
{
	(void)code;
	(void)len;
	(void)pc;
	(void)e;
	return false;
}

const struct machine machine_riscv = {
	.arch = SHSTK_ARCH_RISCV,
	.elf_machine = EM_RISCV,
	.sp = SP,
	.fp = FP,
	.ra = RA,
	.insn_align = 2,
	.ra_in_reg = true,
	.calls_push = false,
	.ra_off = 0,
	.record_off = -16,
	.record_low = false,
	.addr_max = 1ull << 56,
	.callee_saved = 1u << SP | 1u << FP | 1u << 9 | 0x3ffu << 18,
	.is_sigtramp = is_sigtramp,
	.sigtramp_call = { 4 },
	.syscall_len = 4,
	.sigframe_offset = sigframe_offset,
	.after_call = after_call,
	.decode = decode,
	.shadow_entry = riscv_shadow_entry,
};
