/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * shadow_reader.h - copies return addresses out of a hardware shadow stack.
 *
 * The copy works on any memory in the layout of a shadow stack: the tests and
 * `make bench` give it ordinary memory, and do not call the result hardware.
 */
#ifndef SHSTK_SHADOW_READER_H
#define SHSTK_SHADOW_READER_H

#include "internal.h"

/* Reads a word of a shadow stack. The word may change at any time. */
static inline no_sanitize uint64_t hw_word(uint64_t addr)
{
	return *(const volatile uint64_t *)(uintptr_t)addr;
}

/* Most signal frames of one trace whose interrupted pc can be put in later. */
#define HW_SIGNALS 8

/**
 * struct hw_trace - a copy in progress
 * @pcs: receives the return addresses.
 * @marks: NULL, or receives SHSTK_MARK_* of each entry.
 * @max: capacity of @pcs and @marks, in entries.
 * @n: number of entries written.
 * @skip: number of entries still to be left out.
 * @seen_before: the same words were copied before, so the last word is an entry, and each word
 *	that is no token can be a return address. They are not checked again, which saves an
 *	instruction for each word where vectors are short.
 * @gap: an entry in front of the next one was left out.
 * @ended: the copy came to a word behind which there are no entries.
 * @plain: no word of any kind was left out so far; the caller sets it to true.
 * @nsignals: number of elements of @signal.
 * @signal: for each signal frame that can be put in later, the number of entries in front of the
 *	interrupted frame.
 */
struct hw_trace {
	uint64_t *pcs;
	uint8_t *marks;
	unsigned int max, n, skip;
	bool seen_before, gap, ended, plain;
	unsigned int nsignals;
	unsigned int signal[HW_SIGNALS];
};

/* Adds one entry, or leaves it out while @t->skip is not 0. There must be room. */
void hw_put(struct hw_trace *t, uint64_t v, uint8_t mark);

/*
 * Copies the words from @ssp up to @hi, leaving out words that are not return
 * addresses (see native.h). Returns true if the copy came to the end of the entries,
 * false if the array is full. Async-signal-safe.
 */
bool hw_copy(struct hw_trace *t, uint64_t ssp, uint64_t hi);

/*
 * Returns the shadow stack pointer of the code that the innermost signal interrupted,
 * or 0 if it is not found. @ssp is the shadow stack pointer of the signal handler, and
 * @hi the end of that shadow stack.
 */
uint64_t hw_interrupted(uint64_t ssp, uint64_t hi, const void *ucontext);

#endif
