/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fault.h - what an architecture tells of a violation, and how it goes on
 * after one. Called from the SIGSEGV handler.
 */
#ifndef PRELOAD_FAULT_H
#define PRELOAD_FAULT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "start.h"

/**
 * struct violation - a return that the processor refused
 * @pc: the faulting instruction.
 * @to: return address on the ordinary stack or in the register.
 * @shadow: return address on the shadow stack, or 0.
 * @ssp: shadow stack pointer at the fault.
 * @slot: where the kernel keeps the end of the signal frame on the shadow stack.
 * @is_return: it is a return (and not a bad token, for one).
 */
struct violation {
	uint64_t pc;
	uint64_t to;
	uint64_t shadow;
	uint64_t ssp;
	uint64_t slot;
	bool is_return;
};

/* Fills @v; false if the signal frame is not where it should be. */
bool fault_describe(const void *uc, struct violation *v) HIDDEN;

/* Are the means for fault_unwind() there? */
bool fault_can_unwind(void) HIDDEN;

/*
 * Lets the program go on with the shadow stack pointer at @entry. May end the
 * handler then and there.
 */
void fault_unwind(void *uc, const struct violation *v, uint64_t entry) HIDDEN;

/* Carries the return out as a jump; false if it can't be. */
bool fault_jump(void *uc, uint64_t to) HIDDEN;

/* Is this signal part of fault_unwind()? Then it is done with. */
bool fault_resume(const siginfo_t *info, void *uc) HIDDEN;

#endif
