/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * walk_call_x86.h - whether code ends in a call.
 *
 * Both walks have it, this module's and the one of bpf/: of the kernel it uses nothing but
 * its names of types.
 */
#ifndef USHSTK_WALK_CALL_X86_H
#define USHSTK_WALK_CALL_X86_H

/* The longest call instruction that is looked at. */
#define WALK_CALL_BYTES 8

/* Length of "call *..." with this ModRM byte, and SIB byte if it has one. */
static inline unsigned int walk_indirect_call(u8 modrm, u8 sib)
{
	unsigned int mod = modrm >> 6, rm = modrm & 7, len = 2;

	if ((modrm >> 3 & 7) != 2)
		return 0;
	if (mod == 3)
		return len;
	if (rm == 4)
		len++;
	if (mod == 1)
		return len + 1;
	if (mod == 2 || rm == 5 || (rm == 4 && (sib & 7) == 5))
		return len + 4;
	return len;
}

/* Whether the code in front of a return address, up to it, ends in a call. */
static inline bool walk_arch_after_call(const u8 *code)
{
	unsigned int len;

	if (code[WALK_CALL_BYTES - 5] == 0xe8)
		return true;
	for (len = 2; len <= 7; len++) {
		const u8 *insn = code + WALK_CALL_BYTES - len;

		if (insn[0] == 0xff && walk_indirect_call(insn[1], len > 2 ? insn[2] : 0) == len)
			return true;
	}
	return false;
}

#endif /* USHSTK_WALK_CALL_X86_H */
