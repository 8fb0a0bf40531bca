/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * walk_call_arm64.h - tells whether code ends in a call instruction.
 *
 * Two walks share this file, the one of this module and the one in bpf/. It uses nothing of the
 * kernel but its type names.
 */
#ifndef USHSTK_WALK_CALL_ARM64_H
#define USHSTK_WALK_CALL_ARM64_H

#define WALK_CALL_BYTES 4

/* Returns whether @code is BL, BLR, or a BLR with pointer authentication. */
static inline bool walk_arch_after_call(const u8 *code)
{
	u32 insn = code[0] | code[1] << 8 | code[2] << 16 | (u32)code[3] << 24;

	return insn >> 26 == 0x25 || (insn & 0xfffffc1f) == 0xd63f0000 ||
	       (insn & 0xfefff800) == 0xd63f0800;
}

#endif /* USHSTK_WALK_CALL_ARM64_H */
