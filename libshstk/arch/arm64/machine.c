// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * machine.c - describes arm64 for the unwinder: AADWARF64 register numbers, the signal
 * frame of arch/arm64/include/uapi/asm/sigcontext.h, and how to recognise calls.
 */
#include <elf.h>

#include "rule.h"
#include "shadow.h"

enum { X29 = 29, X30 = 30, SP = 31 };

static uint32_t insn(const uint8_t *code)
{
	uint32_t v;

	memcpy(&v, code, sizeof(v));
	return v;
}

/* Recognises mov x8, #__NR_rt_sigreturn; svc #0 (arch/arm64/kernel/vdso/sigreturn.S). */
static bool is_sigtramp(const uint8_t *code, size_t len)
{
	if (len >= 12 && insn(code) == 0xd503245f) /* bti c */
		code += 4;
	else if (len < 8)
		return false;
	return insn(code) == 0xd2801168 && insn(code + 4) == 0xd4000001;
}

/*
 * Returns where register @reg lies in struct rt_sigframe. That is a siginfo (128 bytes) and
 * a ucontext, whose uc_mcontext begins after 176 bytes: fault_address, regs[31], sp, pc.
 */
static int sigframe_offset(unsigned int reg)
{
	return 128 + 176 + 8 + 8 * (int)reg;
}

/* Tells whether the code ends with a call: bl, blr, blraa, blraaz, blrab, blrabz. */
static bool after_call(const uint8_t *code, size_t len)
{
	uint32_t v;

	if (len < 4)
		return false;
	v = insn(code + len - 4);
	return (v & 0xfc000000) == 0x94000000 || (v & 0xfffffc1f) == 0xd63f0000 ||
	       (v & 0xfefff800) == 0xd63f0800;
}

/* The first entry of a PLT as AAELF64 gives it. The other entries are the same without the push. */
static const uint32_t plt_entry[][2] = {
	/* mask, instruction */
	{ 0xffffffff, 0xa9bf7bf0 }, /* stp x16, x30, [sp, #-16]! */
	{ 0x9f00001f, 0x90000010 }, /* adrp x16, ... */
	{ 0xffc003ff, 0xf9400211 }, /* ldr x17, [x16, ...] */
	{ 0xff8003ff, 0x91000210 }, /* add x16, x16, ... */
	{ 0xffffffff, 0xd61f0220 }, /* br x17 */
};

enum { PLT_INSNS = sizeof(plt_entry) / sizeof(*plt_entry) };

/*
 * Returns the number of the instruction of @plt_entry that @code begins with, if all of them from
 * @first on are there, before and behind it; or PLT_INSNS.
 */
static size_t place_in_plt(const uint8_t *code, size_t before, size_t len, size_t first)
{
	size_t at, i;

	for (at = first; at < PLT_INSNS; at++) {
		if (before < 4 * (at - first) || len < 4 * (PLT_INSNS - at))
			continue;
		for (i = first; i < PLT_INSNS; i++)
			if ((insn(code + 4 * i - 4 * at) & plt_entry[i][0]) != plt_entry[i][1])
				break;
		if (i == PLT_INSNS)
			break;
	}
	return at;
}

/*
 * Returns the unwind rule in an entry of a PLT, or RULE_NONE if @code is not in one. Linkers do not
 * describe them. A function is entered through one with its return address in x30. For the first call
 * of a function, an entry jumps to the first one, which pushes x16 and the return address.
 */
static uint64_t stub_rule(const uint8_t *code, size_t before, size_t len)
{
	size_t at;

	if (len >= 8 && insn(code) == 0xd503245f) { /* bti c */
		code += 4;
		len -= 4;
	}
	at = place_in_plt(code, before, len, 0);
	if (at < PLT_INSNS)
		return RULE_SP | RULE_CFA(at ? 16 : 0);
	return place_in_plt(code, before, len, 1) < PLT_INSNS ? RULE_SP | RULE_CFA(0) : RULE_NONE;
}

const struct machine machine_arm64 = {
	.arch = SHSTK_ARCH_ARM64,
	.elf_machine = EM_AARCH64,
	.sp = SP,
	.fp = X29,
	.ra = X30,
	.insn_align = 4,
	.ra_in_reg = true,
	.calls_push = true,
	.ra_off = 0,
	.record_off = 0,
	.record_low = true,
	.fp_ends = true,
	.addr_max = 1ull << 55,
	.callee_saved = 0x7ffull << 19 | 1ull << SP, /* x19-x29 */
	.is_sigtramp = is_sigtramp,
	.sigtramp_call = { 4 },
	.syscall_len = 4,
	.sigframe_offset = sigframe_offset,
	.after_call = after_call,
	/* ret; mov x0, #0; then bl */
	.context_end = { 0xc0, 0x03, 0x5f, 0xd6, 0x00, 0x00, 0x80, 0xd2 },
	.context_size = 8,
	.context_at = 4,
	.decode = arm64_decode,
	.stub_rule = stub_rule,
	.shadow_entry = arm64_shadow_entry,
};
