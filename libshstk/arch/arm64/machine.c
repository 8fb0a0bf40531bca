// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * arm64 for the unwinder: AADWARF64 register numbers, the signal frame of
 * arch/arm64/include/uapi/asm/sigcontext.h, the look of calls.
 */
#include <elf.h>

#include "shadow.h"

enum { X29 = 29, X30 = 30, SP = 31 };

static uint32_t insn(const uint8_t *code)
{
	uint32_t v;

	memcpy(&v, code, sizeof(v));
	return v;
}

/* mov x8, #__NR_rt_sigreturn; svc #0 (arch/arm64/kernel/vdso/sigreturn.S) */
static bool is_sigtramp(const uint8_t *code, size_t len)
{
	if (len >= 12 && insn(code) == 0xd503245f)	/* bti c */
		code += 4;
	else if (len < 8)
		return false;
	return insn(code) == 0xd2801168 && insn(code + 4) == 0xd4000001;
}

/*
 * struct rt_sigframe is siginfo (128 bytes) and ucontext; its uc_mcontext is
 * 176 bytes in: fault_address, regs[31], sp, pc.
 */
static int sigframe_offset(unsigned int reg)
{
	return 128 + 176 + 8 + 8 * (int)reg;
}

/* bl, blr, blraa and its kin */
static bool after_call(const uint8_t *code, size_t len)
{
	uint32_t v;

	if (len < 4)
		return false;
	v = insn(code + len - 4);
	return (v & 0xfc000000) == 0x94000000 ||
	       (v & 0xfffffc1f) == 0xd63f0000 ||
	       (v & 0xfefff800) == 0xd63f0800;
}

const struct machine machine_arm64 = {
	.arch = SHSTK_ARCH_ARM64,
	.elf_machine = EM_AARCH64,
	.sp = SP,
	.fp = X29,
	.ra = X30,
	.insn_align = 4,
	.ra_in_reg = true,
	.ra_off = 0,
	.addr_max = 1ull << 55,
	.callee_saved = 0x7ffull << 19 | 1ull << SP,	/* x19-x29 */
	.is_sigtramp = is_sigtramp,
	.sigframe_offset = sigframe_offset,
	.after_call = after_call,
	.decode = arm64_decode,
	.shadow_entry = arm64_shadow_entry,
};
