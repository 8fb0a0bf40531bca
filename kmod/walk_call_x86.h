/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * walk_call_x86.h - tells whether code ends in a call instruction.
 *
 * Two walks share this file, the one of this module and the one in bpf/. It uses nothing of the
 * kernel but its type names.
 */
#ifndef USHSTK_WALK_CALL_X86_H
#define USHSTK_WALK_CALL_X86_H

/* Length of the longest call instruction that is recognized. */
#define WALK_CALL_BYTES 8

/*
 * Returns the length of "call *..." with this ModRM byte and, if it has one, this SIB byte. Returns
 * 0 if it is no call.
 */
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

/* Returns whether @code, the WALK_CALL_BYTES in front of a return address, ends in a call. */
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
