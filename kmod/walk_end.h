/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * walk_end.h - how a walk goes on, and ends.
 *
 * It is compiled in user space and by BPF programs, too: of the kernel it uses nothing.
 */
#ifndef USHSTK_WALK_END_H
#define USHSTK_WALK_END_H

/* Most entries of one walk, however many the caller has room for. */
#define WALK_MAX 512

/**
 * enum walk_end - how a walk ended; each has a counter of the same name
 * @WALK_WHOLE: at a frame that a rule calls the outermost.
 * @WALK_ZERO: at a return address of 0.
 * @WALK_ROOM: no room for more entries.
 * @WALK_NO_CODE: a return address does not lie in executable memory, and is left out.
 * @WALK_NO_TABLE: in code that no table is about, and there is no frame record that
 *	leads behind a call.
 * @WALK_NO_RULE: the same within a file that has a table.
 * @WALK_NO_KIND: the frame is described, but by means that no kind of rule has.
 * @WALK_NO_MEMORY: the stack could not be read: not present, or not there.
 * @WALK_BAD_CFA: the stack would not grow.
 * @WALK_REFUSED: nothing was walked: the address space is not current's, or not of
 *	64-bit code.
 * @WALK_ENDS: their number.
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
 * enum walk_go - what happens next, where it is not the end: enum walk_end
 * @GO_ON: the next frame.
 * @GO_CAREFULLY: the same, by the walk that follows more; see walk_frames().
 * @GO_SPECIAL: the frame is not for the loop.
 */
enum walk_go { GO_ON = -1, GO_CAREFULLY = -2, GO_SPECIAL = -3 };

#endif /* USHSTK_WALK_END_H */
