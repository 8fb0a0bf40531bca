/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * walk_end.h - the values that say how a walk ends or continues.
 *
 * This file is also compiled in user space and in BPF programs, so it uses nothing of the kernel.
 */
#ifndef USHSTK_WALK_END_H
#define USHSTK_WALK_END_H

/* Most entries of one walk, even if the caller has room for more. */
#define WALK_MAX 512

/**
 * enum walk_end - how a walk ended; each value has a counter of the same name
 * @WALK_WHOLE: at a frame that a rule marks as the outermost.
 * @WALK_ZERO: at a return address of 0.
 * @WALK_ROOM: there is no room for more entries.
 * @WALK_NO_CODE: a return address is not in executable memory; it is left out of the chain.
 * @WALK_NO_TABLE: in code that no table covers, without a frame record whose return address is
 *	behind a call; or in the vdso, whose table is missing.
 * @WALK_NO_RULE: in code that has no rule in a file that has a table, without such a frame record.
 * @WALK_NO_KIND: the frame is described, but in a way that no kind of rule can express.
 * @WALK_NO_MEMORY: the stack could not be read, because a page is not present or not mapped.
 * @WALK_BAD_CFA: the CFA does not lie above the stack pointer.
 * @WALK_REFUSED: no walk was made, because the address space is not that of current, or the code is
 *	not 64-bit.
 * @WALK_ENDS: number of these values.
 */
enum walk_end {
	WALK_WHOLE,
	WALK_ZERO,
	WALK_ROOM,
	WALK_NO_CODE,
	WALK_NO_TABLE,
	WALK_NO_RULE,
	WALK_NO_KIND,
	WALK_NO_MEMORY,
	WALK_BAD_CFA,
	WALK_REFUSED,
	WALK_ENDS,
};

/**
 * enum walk_go - how a walk continues, where the value is not one of enum walk_end
 * @GO_ON: with the next frame.
 * @GO_CAREFULLY: with the next frame, in the version of walk_frames() that follows more.
 * @GO_SPECIAL: the loop cannot pass this frame.
 */
enum walk_go { GO_ON = -1, GO_CAREFULLY = -2, GO_SPECIAL = -3 };

#endif /* USHSTK_WALK_END_H */
