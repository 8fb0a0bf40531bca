/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * walk.h - step from a frame to its caller, whoever's frame it is.
 *
 * The walker knows nothing of its own process: memory, modules and code come
 * from a view. The capture of own threads has a fast loop for ordinary rules
 * (capture.c) and comes here for the rest.
 */
#ifndef SHSTK_WALK_H
#define SHSTK_WALK_H

#include "module.h"

/**
 * struct view - the program that is unwound
 * @m: its instruction set.
 * @pac_mask: bits of a return address that are no address.
 * @full: recover every register, not only pc, sp and fp.
 * @mem: reads its memory.
 * @find: the module that has an address, or NULL.
 * @is_code: may the address be executed?
 * @arg: for @find and @is_code.
 */
struct view {
	const struct machine *m;
	uint64_t pac_mask;
	bool full;
	struct memory mem;
	struct module *(*find)(void *arg, uint64_t pc);
	bool (*is_code)(void *arg, uint64_t pc);
	void *arg;
};

/**
 * struct cursor - one frame
 * @regs: its registers.
 * @exact: pc is where it stopped, not a return address.
 * @mark: SHSTK_MARK_* of the frame.
 * @innermost: nothing was called from here yet.
 * @ra_elsewhere: its return address is in another register than usual, or where an
 *	expression says.
 * @sp_guessed: the stack pointer was found by a heuristic, here or further in.
 */
struct cursor {
	struct regs regs;
	bool exact;
	bool innermost;
	uint8_t mark;
	bool ra_elsewhere;
	bool sp_guessed;
};

#define STEP_COMPLETE 1

/*
 * Step to the caller. 0: done; STEP_COMPLETE: this is the outermost frame;
 * negative: -enum shstk_end. May add SHSTK_MARK_SIGNAL to the frame that is
 * left: its marks are returned in *mark.
 */
int cursor_step(const struct view *v, struct cursor *c, uint8_t *mark);

#endif
