/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * epilogue.h - finds out where a function will return to, from its code alone.
 *
 * This is for code that no unwind information describes. The instructions are followed from the
 * program counter to the nearest return. On the way, the stack pointer, the frame pointer and the
 * return address are tracked, relative to their present values. The answer is right if the code is
 * ordinary: calls are taken to return and to leave the stack pointer unchanged, and memory that is
 * not written on the way is taken to hold what the function saved. The caller checks each answer.
 */
#ifndef SHSTK_EPILOGUE_H
#define SHSTK_EPILOGUE_H

#include "rule.h"

/* The registers that are tracked. */
enum tracked { TRACK_SP, TRACK_FP, TRACK_RA, TRACKED };

enum effect_op {
	EFFECT_SET, /* reg = base + off */
	EFFECT_LOAD, /* reg = [base + off] */
	EFFECT_STORE, /* [base + off] = reg */
	EFFECT_LOSE, /* reg is unknown from now on */
};

enum effect_flow {
	FLOW_NEXT,
	FLOW_CALL, /* calls the target (0: unknown), then goes on with the next instruction */
	FLOW_BRANCH, /* goes on with the target or with the next instruction */
	FLOW_JUMP, /* goes on with the target */
	FLOW_RETURN,
	FLOW_TAIL, /* jumps out of the function, to where the code does not say */
	FLOW_UNSURE, /* jumps to where the code does not say, perhaps within the function */
	FLOW_STOP, /* nothing is known about what follows */
};

/**
 * struct effect - what one instruction does to the tracked registers
 * @len: length of the instruction in bytes.
 * @flow: enum effect_flow.
 * @n: number of operations in @ops.
 * @ops: operations, in the order in which they happen.
 * @target: target address for FLOW_CALL, FLOW_BRANCH and FLOW_JUMP.
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

/* Adds an operation to @e. Returns false if there is no room; no instruction needs that much. */
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
 * struct code - how to read the instructions of a program
 * @bytes: returns the code at an address, or NULL; *len receives the number of bytes.
 * @covered: returns true if unwind information covers the address.
 * @arg: argument of @bytes and @covered.
 */
struct code {
	const uint8_t *(*bytes)(void *arg, uint64_t pc, size_t *len);
	bool (*covered)(void *arg, uint64_t pc);
	void *arg;
};

/**
 * epilogue_fn - receives the rule that one path gives
 * @arg: argument that was given to epilogue_rules().
 * @rule: rule of kind RULE_SP or RULE_FP.
 * @lost_fp: the caller's frame pointer cannot be told.
 *
 * Return: true if this is the right rule; false to get the rule of the next path.
 */
typedef bool (*epilogue_fn)(void *arg, uint64_t rule, bool lost_fp);

/**
 * epilogue_rules() - find the rules that a frame may have, from its code
 * @m: instruction set.
 * @code: reads the code.
 * @pc: program counter or return address of the frame.
 * @innermost: no function was called from this frame.
 * @found: called for each path on which the function returns, the most likely path first.
 * @arg: argument of @found.
 *
 * A path may go on behind a call that does not return, and so into another function: the caller has
 * to verify what it finds.
 *
 * Context: async-signal-safe; follows at most some hundred instructions.
 *
 * Return: true if @found returned true.
 */
bool epilogue_rules(const struct machine *m, const struct code *code, uint64_t pc, bool innermost,
		    epilogue_fn found, void *arg);

#endif
