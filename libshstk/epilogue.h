/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * epilogue.h - where a function will return to, from its code alone.
 *
 * For code that no unwind information describes: from the program counter the
 * instructions are followed to the nearest return, keeping track of where the
 * stack pointer, the frame pointer and the return address are, relative to what
 * they are now. The answers are as good as the code is ordinary: calls are taken
 * to leave the stack pointer as it was and to return, and memory that is not written
 * on the way to be what was saved. The walker checks what it finds.
 */
#ifndef SHSTK_EPILOGUE_H
#define SHSTK_EPILOGUE_H

#include "rule.h"

/* What is tracked. */
enum tracked { TRACK_SP, TRACK_FP, TRACK_RA, TRACKED };

enum effect_op {
	EFFECT_SET, /* reg = base + off */
	EFFECT_LOAD, /* reg = [base + off] */
	EFFECT_STORE, /* [base + off] = reg */
	EFFECT_LOSE, /* reg = anything */
};

enum effect_flow {
	FLOW_NEXT,
	FLOW_CALL, /* of the target, or of 0 if unknown; comes back to the next instruction */
	FLOW_BRANCH, /* to the target or the next instruction */
	FLOW_JUMP, /* to the target */
	FLOW_RETURN,
	FLOW_TAIL, /* to where the code does not say; the function's end */
	FLOW_UNSURE, /* the same, but it may also be within the function */
	FLOW_STOP, /* nothing can be said */
};

/**
 * struct effect - what one instruction does to what is tracked
 * @len: bytes.
 * @flow: enum effect_flow.
 * @n: number of operations.
 * @ops: in the order in which they happen.
 * @target: address, for FLOW_CALL, FLOW_BRANCH and FLOW_JUMP.
 */
struct effect {
	uint8_t len;
	uint8_t flow;
	uint8_t n;
	struct {
		uint8_t op;
		uint8_t reg;
		uint8_t base;
		int32_t off;
	} ops[4];
	uint64_t target;
};

/* Add an operation. False: there is no room, which no instruction needs. */
static inline bool effect_add(struct effect *e, int op, int reg, int base, int32_t off)
{
	if (e->n == ARRAY_SIZE(e->ops))
		return false;
	e->ops[e->n].op = op;
	e->ops[e->n].reg = reg;
	e->ops[e->n].base = base;
	e->ops[e->n++].off = off;
	return true;
}

/**
 * struct code - where instructions are read
 * @bytes: the code at an address and how much there is, or NULL.
 * @covered: has the address unwind information?
 * @arg: for both.
 */
struct code {
	const uint8_t *(*bytes)(void *arg, uint64_t pc, size_t *len);
	bool (*covered)(void *arg, uint64_t pc);
	void *arg;
};

/**
 * epilogue_fn - takes what one path says
 * @arg: passed through.
 * @rule: RULE_SP or RULE_FP.
 * @lost_fp: the caller's frame pointer cannot be told.
 *
 * Return: true if that is it; false to be told what the next path says.
 */
typedef bool (*epilogue_fn)(void *arg, uint64_t rule, bool lost_fp);

/**
 * epilogue_rules() - the rules that a frame may have, from its code
 * @m: instruction set.
 * @code: reads the code.
 * @pc: program counter, or a return address.
 * @innermost: nothing was called from here yet.
 * @found: called for each path on which a function returns, the most likely first.
 * @arg: for @found.
 *
 * A path may lead on behind a call that does not return, into another function: the
 * caller has to verify what it finds.
 *
 * Context: async-signal-safe; takes at most some hundred instructions.
 *
 * Return: true if @found did.
 */
bool epilogue_rules(const struct machine *m, const struct code *code, uint64_t pc, bool innermost,
		    epilogue_fn found, void *arg);

#endif
