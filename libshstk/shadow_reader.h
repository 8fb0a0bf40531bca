/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * shadow_reader.h - copy return addresses out of a hardware shadow stack.
 *
 * The copy takes any memory in the layout of a shadow stack: the tests and
 * `make bench` give it ordinary memory, which is then not called hardware.
 */
#ifndef SHSTK_SHADOW_READER_H
#define SHSTK_SHADOW_READER_H

#include "internal.h"

/* A word of a shadow stack, which others may write. */
static inline no_sanitize uint64_t hw_word(uint64_t addr)
{
	return *(const volatile uint64_t *)(uintptr_t)addr;
}

/* Signal frames of one trace whose interrupted pc can be put in later. */
#define HW_SIGNALS 8

/**
 * struct hw_trace - a copy in progress
 * @pcs: receives the return addresses.
 * @marks: NULL, or receives SHSTK_MARK_*.
 * @max: capacity.
 * @n: entries written.
 * @skip: entries still to be left out.
 * @seen_before: what is to be copied was copied before: it ends in an entry, and each word that
 *	is no token can be a return address. It need not be checked again, which takes an
 *	instruction for each where vectors are short.
 * @gap: something before the next entry was left out.
 * @ended: came to a word behind which there are no entries.
 * @plain: nothing was left out so far, of whatever kind.
 * @nsignals: signal frames met, of those that can be put in.
 * @signal: for each, number of entries written before the interrupted frame's.
 */
struct hw_trace {
	uint64_t *pcs;
	uint8_t *marks;
	unsigned int max, n, skip;
	bool seen_before, gap, ended, plain;
	unsigned int nsignals;
	unsigned int signal[HW_SIGNALS];
};

/* Add one entry, or skip it. There must be room. */
void hw_put(struct hw_trace *t, uint64_t v, uint8_t mark);

/*
 * Copy from @ssp up to @hi, leaving out what is no return address (see
 * native.h). True: came to the end; false: the array is full.
 * Async-signal-safe.
 */
bool hw_copy(struct hw_trace *t, uint64_t ssp, uint64_t hi);

/*
 * The shadow stack pointer of the code that the innermost signal interrupted,
 * seen from a handler whose own pointer is @ssp. 0: not found.
 */
uint64_t hw_interrupted(uint64_t ssp, uint64_t hi, const void *ucontext);

#endif
