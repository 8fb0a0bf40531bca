/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * rowcode.h - the rules of a function as a short string of bytes.
 *
 * Written by table.c when it compiles a chunk, read at each look-up in it. The bytes never
 * leave the process, so what is read is trusted.
 */
#ifndef SHSTK_ROWCODE_H
#define SHSTK_ROWCODE_H

#include "rule.h"

/**
 * struct rowcode_state - what writer and reader know after a row
 * @rule: the rule in force.
 * @body: the one before the last epilogue, which ROW_BACK returns to.
 * @down: an epilogue is going on: the frame has been getting smaller.
 */
struct rowcode_state {
	uint64_t rule;
	uint64_t body;
	bool down;
};

/**
 * struct rowcode_writer - a function that is being written
 * @m: its machine.
 * @p: the next byte.
 * @end: behind the last that there is room for.
 * @loc: address of the last row.
 * @s: the state after it.
 * @full: not all of the function could be written.
 */
struct rowcode_writer {
	const struct machine *m;
	uint8_t *p, *end;
	uint64_t loc;
	struct rowcode_state s;
	bool full;
};

/* Begin a function that starts at @start; the caller sets @p and @end. */
void rowcode_begin(struct rowcode_writer *w, const struct machine *m, uint64_t start);

/*
 * Add that @rule holds from @loc on, which is not below the last row's. RULE_NONE ends
 * the function.
 */
void rowcode_put(struct rowcode_writer *w, uint64_t loc, uint64_t rule);

/* The rule at @vaddr in the function at @start whose bytes @p are. RULE_NONE: behind its end. */
uint64_t rowcode_find(const struct machine *m, const uint8_t *p, uint64_t start, uint64_t vaddr);

#endif
