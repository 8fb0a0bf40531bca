/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fault.h - what depends on the architecture: the description of a violation, and how the program
 * goes on after one. These functions are called in the SIGSEGV handler.
 */
#ifndef PRELOAD_FAULT_H
#define PRELOAD_FAULT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "start.h"

/**
 * struct violation - a return that the processor refused
 * @pc: address of the faulting instruction.
 * @to: return address on the ordinary stack or in the register.
 * @shadow: return address on the shadow stack, or 0.
 * @ssp: shadow stack pointer at the fault.
 * @slot: address of the word with which the kernel ends the signal frame on the shadow stack.
 * @is_return: the instruction is a return; otherwise it is, for example, a switch with a bad token.
 */
struct violation {
	uint64_t pc;
	uint64_t to;
	uint64_t shadow;
	uint64_t ssp;
	uint64_t slot;
	bool is_return;
};

/* Fills @v. Returns false if the signal frame is not found. */
bool fault_describe(const void *uc, struct violation *v) HIDDEN;

/* Returns whether fault_unwind() is possible. */
bool fault_can_unwind(void) HIDDEN;

/*
 * Lets the program go on with the shadow stack pointer at @entry. It may end the handler at once
 * instead of returning.
 */
void fault_unwind(void *uc, const struct violation *v, uint64_t entry) HIDDEN;

/* Carries the return out as a jump. Returns false if that is not possible. */
bool fault_jump(void *uc, uint64_t to) HIDDEN;

/* Returns true if this signal is part of fault_unwind(); then it is handled completely. */
bool fault_resume(const siginfo_t *info, void *uc) HIDDEN;

#endif
