// SPDX-License-Identifier: LGPL-2.1-or-later
/* cfi_expr.c - evaluates the expressions of DWARF call frame information; see cfi.h. */
#include "cfi.h"
#include "cfi_bytes.h"

/* The operations of DWARF 5 section 7.7.1 that call frame information uses. */
/* clang-format off */
enum {
	OP_ADDR = 0x03, OP_DEREF = 0x06, OP_CONST1U = 0x08, OP_CONST1S = 0x09,
	OP_CONST2U = 0x0a, OP_CONST2S = 0x0b, OP_CONST4U = 0x0c,
	OP_CONST4S = 0x0d, OP_CONST8U = 0x0e, OP_CONST8S = 0x0f,
	OP_CONSTU = 0x10, OP_CONSTS = 0x11, OP_DUP = 0x12, OP_DROP = 0x13,
	OP_OVER = 0x14, OP_PICK = 0x15, OP_SWAP = 0x16, OP_ROT = 0x17,
	OP_ABS = 0x19, OP_AND = 0x1a, OP_DIV = 0x1b, OP_MINUS = 0x1c,
	OP_MOD = 0x1d, OP_MUL = 0x1e, OP_NEG = 0x1f, OP_NOT = 0x20,
	OP_OR = 0x21, OP_PLUS = 0x22, OP_PLUS_UCONST = 0x23, OP_SHL = 0x24,
	OP_SHR = 0x25, OP_SHRA = 0x26, OP_XOR = 0x27, OP_BRA = 0x28,
	OP_EQ = 0x29, OP_GE = 0x2a, OP_GT = 0x2b, OP_LE = 0x2c, OP_LT = 0x2d,
	OP_NE = 0x2e, OP_SKIP = 0x2f, OP_LIT0 = 0x30, OP_BREG0 = 0x70,
	OP_BREGX = 0x92, OP_DEREF_SIZE = 0x94, OP_NOP = 0x96,
};
/* clang-format on */

/*
 * The longest expression that cfi_loads_by() takes for such a one, in bytes with its length. Numbers may be padded to
 * any length, and each instruction that sets an offset asks anew (set_offset()).
 */
#define LOADS_BYTES 32

#define EVAL_STACK 16
#define EVAL_STEPS 512

/* Compares two signed numbers. Returns false if @op is no comparison. */
static bool compare(uint8_t op, int64_t a, int64_t b, uint64_t *v)
{
	switch (op) {
	case OP_EQ:
		*v = a == b;
		return true;
	case OP_GE:
		*v = a >= b;
		return true;
	case OP_GT:
		*v = a > b;
		return true;
	case OP_LE:
		*v = a <= b;
		return true;
	case OP_LT:
		*v = a < b;
		return true;
	case OP_NE:
		*v = a != b;
		return true;
	default:
		return false;
	}
}

/*
 * Computes an operation of two operands. Returns false if there is no such operation, or if the
 * quotient is undefined.
 */
static bool binary(uint8_t op, uint64_t a, uint64_t b, uint64_t *v)
{
	int64_t sa = a, sb = b;

	switch (op) {
	case OP_AND:
		*v = a & b;
		return true;
	case OP_DIV:
		if (!sb || (sb == -1 && sa == INT64_MIN))
			return false;
		*v = sa / sb;
		return true;
	case OP_MINUS:
		*v = a - b;
		return true;
	case OP_MOD:
		if (!b)
			return false;
		*v = a % b;
		return true;
	case OP_MUL:
		*v = a * b;
		return true;
	case OP_OR:
		*v = a | b;
		return true;
	case OP_PLUS:
		*v = a + b;
		return true;
	case OP_SHL:
		*v = b < 64 ? a << b : 0;
		return true;
	case OP_SHR:
		*v = b < 64 ? a >> b : 0;
		return true;
	case OP_SHRA:
		*v = sa >> (b < 64 ? b : 63);
		return true;
	case OP_XOR:
		*v = a ^ b;
		return true;
	default:
		return compare(op, sa, sb, v);
	}
}

struct eval {
	uint64_t stack[EVAL_STACK];
	unsigned int n;
	const struct regs *regs;
	const struct memory *mem;
};

static int push(struct eval *e, uint64_t v)
{
	if (e->n == EVAL_STACK)
		return -SHSTK_END_BAD_RULE;
	e->stack[e->n++] = v;
	return 0;
}

static int push_reg(struct eval *e, uint64_t reg, int64_t off)
{
	/* x86 code refers to the program counter by the return address column, 16. */
	if (reg >= NREGS)
		return -SHSTK_END_BAD_RULE;
	if (!(e->regs->known & 1ull << reg))
		return -SHSTK_END_NO_REGISTER;
	return push(e, e->regs->r[reg] + off);
}

static int deref(struct eval *e, unsigned int size)
{
	uint64_t v = 0;

	if (!e->n || !size || size > 8)
		return -SHSTK_END_BAD_RULE;
	if (e->mem->read(e->mem->arg, e->stack[e->n - 1], &v, size))
		return -SHSTK_END_READ;
	e->stack[e->n - 1] = v;
	return 0;
}

static int stack_op(struct eval *e, uint8_t op, struct bytes *b)
{
	uint64_t *top = e->stack + e->n - 1;
	uint64_t v, n;

	switch (op) {
	case OP_DUP:
		return e->n ? push(e, *top) : -SHSTK_END_BAD_RULE;
	case OP_DROP:
		if (!e->n)
			return -SHSTK_END_BAD_RULE;
		e->n--;
		return 0;
	case OP_OVER:
	case OP_PICK:
		n = op == OP_OVER ? 1 : bytes_fixed(b, 1);
		return n < e->n ? push(e, top[-(int)n]) : -SHSTK_END_BAD_RULE;
	case OP_SWAP:
		if (e->n < 2)
			return -SHSTK_END_BAD_RULE;
		v = top[0];
		top[0] = top[-1];
		top[-1] = v;
		return 0;
	case OP_ROT:
		if (e->n < 3)
			return -SHSTK_END_BAD_RULE;
		v = top[0];
		top[0] = top[-1];
		top[-1] = top[-2];
		top[-2] = v;
		return 0;
	case OP_ABS:
	case OP_NEG:
	case OP_NOT:
	case OP_PLUS_UCONST:
		if (!e->n)
			return -SHSTK_END_BAD_RULE;
		if (op == OP_NOT)
			*top = ~*top;
		else if (op == OP_PLUS_UCONST)
			*top += bytes_uleb(b);
		else if (op == OP_NEG || (int64_t)*top < 0)
			*top = -*top;
		return 0;
	default:
		if (e->n < 2 || !binary(op, top[-1], top[0], &v))
			return -SHSTK_END_BAD_RULE;
		e->n--;
		top[-1] = v;
		return 0;
	}
}

static int eval_op(struct eval *e, uint8_t op, struct bytes *b, const uint8_t *start)
{
	uint64_t reg;
	int64_t off;

	if (op >= OP_LIT0 && op < OP_LIT0 + 32)
		return push(e, op - OP_LIT0);
	if (op >= OP_BREG0 && op < OP_BREG0 + 32)
		return push_reg(e, op - OP_BREG0, bytes_sleb(b));
	switch (op) {
	case OP_NOP:
		return 0;
	case OP_ADDR:
	case OP_CONST8U:
	case OP_CONST8S:
		return push(e, bytes_fixed(b, 8));
	case OP_CONST1U:
	case OP_CONST2U:
	case OP_CONST4U:
		return push(e, bytes_fixed(b, 1u << ((op - OP_CONST1U) / 2)));
	case OP_CONST1S:
	case OP_CONST2S:
	case OP_CONST4S:
		return push(e, bytes_signed(b, 1u << ((op - OP_CONST1S) / 2)));
	case OP_CONSTU:
		return push(e, bytes_uleb(b));
	case OP_CONSTS:
		return push(e, bytes_sleb(b));
	case OP_BREGX:
		reg = bytes_uleb(b);
		return push_reg(e, reg, bytes_sleb(b));
	case OP_DEREF:
		return deref(e, 8);
	case OP_DEREF_SIZE:
		return deref(e, bytes_fixed(b, 1));
	case OP_SKIP:
	case OP_BRA:
		off = bytes_signed(b, 2);
		if (op == OP_BRA) {
			if (!e->n)
				return -SHSTK_END_BAD_RULE;
			if (!e->stack[--e->n])
				return 0;
		}
		if (off < start - b->p || off > b->end - b->p)
			return -SHSTK_END_BAD_RULE;
		b->p += off;
		return 0;
	default:
		return stack_op(e, op, b);
	}
}

int cfi_eval(const struct cfi_section *sec, size_t off, const struct regs *regs,
	     const struct memory *mem, const uint64_t *cfa, uint64_t *ret)
{
	struct bytes b = { sec->s.data + off, sec->s.data + sec->s.size, false };
	struct eval e = { .regs = regs, .mem = mem };
	unsigned int steps = 0;
	const uint8_t *start;
	uint64_t len;

	len = bytes_uleb(&b);
	if (b.bad || len > (size_t)(b.end - b.p))
		return -SHSTK_END_BAD_RULE;
	start = b.p;
	b.end = b.p + len;
	if (cfa)
		push(&e, *cfa);
	while (b.p < b.end) {
		uint8_t op = bytes_fixed(&b, 1);
		int err = eval_op(&e, op, &b, start);

		if (err)
			return err;
		if (b.bad || ++steps > EVAL_STEPS)
			return -SHSTK_END_BAD_RULE;
	}
	if (!e.n)
		return -SHSTK_END_BAD_RULE;
	*ret = e.stack[e.n - 1];
	return 0;
}

int cfi_loads_by(const struct cfi_section *sec, size_t off)
{
	const uint8_t *start = sec->s.data + off;
	struct bytes b = { start, start + min(sec->s.size - off, (size_t)LOADS_BYTES), false };
	uint64_t len = bytes_uleb(&b);
	uint8_t op;

	if (b.bad || len > (size_t)(b.end - b.p))
		return -1;
	b.end = b.p + len;
	op = bytes_fixed(&b, 1);
	if (op < OP_BREG0 || op >= OP_BREG0 + 32)
		return -1;
	bytes_sleb(&b);
	if (bytes_fixed(&b, 1) != OP_DEREF)
		return -1;
	if (b.p < b.end) {
		if (bytes_fixed(&b, 1) != OP_PLUS_UCONST)
			return -1;
		bytes_uleb(&b);
	}
	return b.bad || b.p != b.end ? -1 : op - OP_BREG0;
}
