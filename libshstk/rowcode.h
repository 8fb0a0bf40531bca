/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * rowcode.h - the unwind rules of a function as a short string of bytes.
 *
 * table.c writes these strings when it compiles a chunk, and reads them at each look-up in the
 * chunk. The bytes never leave the process, so the reader trusts them.
 */
#ifndef SHSTK_ROWCODE_H
#define SHSTK_ROWCODE_H

#include "rule.h"

/**
 * struct rowcode_state - what the writer and the reader know after a row
 * @rule: the rule that holds now.
 * @body: the rule before the last epilogue; ROW_BACK returns to it.
 * @down: the last row made the frame smaller, so an epilogue is going on.
 */
struct rowcode_state {
	uint64_t rule;
	uint64_t body;
	bool down;
};

/**
 * struct rowcode_writer - a function whose rules are being written
 * @m: the machine of the function.
 * @p: where the next byte is written; the caller sets the first value.
 * @end: the end of the room for bytes; the caller sets it.
 * @loc: address of the last row.
 * @s: the state after the last row.
 * @full: not all of the function could be written.
 */
struct rowcode_writer {
	const struct machine *m;
	uint8_t *p, *end;
	uint64_t loc;
	struct rowcode_state s;
	bool full;
};

/* Begins a function that starts at @start. The caller sets @w->p and @w->end. */
void rowcode_begin(struct rowcode_writer *w, const struct machine *m, uint64_t start);

/*
 * Adds a row: @rule holds from @loc on, which is not below the address of the last row. RULE_NONE
 * ends the function.
 */
void rowcode_put(struct rowcode_writer *w, uint64_t loc, uint64_t rule);

/*
 * Returns the rule at @vaddr in the function that starts at @start and whose bytes are at @p, or
 * RULE_NONE if @vaddr lies behind the end of the function.
 */
uint64_t rowcode_find(const struct machine *m, const uint8_t *p, uint64_t start, uint64_t vaddr);

#endif
