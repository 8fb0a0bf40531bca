// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * decode.c - decodes x86-64 instructions as far as epilogue.h needs them: how long each
 * is, and what it does to rsp, rbp and the flow of control.
 */
#include "epilogue.h"
#include "machine.h"

enum { RSP = 4, RBP = 5 };

/*
 * The tables tell for each opcode what follows it:
 *	.  nothing		m  ModRM
 *	b  8 bits		B  ModRM and 8 bits
 *	z  16 or 32 bits	Z  ModRM and 16 or 32 bits
 *	d  32 bits		w  16 bits
 *	v  16, 32 or 64 bits (REX.W)
 *	D  24 bits (enter)
 *	o  an address		f  ModRM, and b or z if it is test (group 3)
 *	x  invalid, or a prefix that was read before
 */
/* Each line has two rows of the manual's opcode map. */
/* clang-format off */
static const char one_byte[] =
	"mmmmbzxxmmmmbzxx" "mmmmbzxxmmmmbzxx"	/* 00 */
	"mmmmbzxxmmmmbzxx" "mmmmbzxxmmmmbzxx"	/* 20 */
	"xxxxxxxxxxxxxxxx" "................"	/* 40 */
	"xxxmxxxxzZbB...." "bbbbbbbbbbbbbbbb"	/* 60 */
	"BZxBmmmmmmmmmmmm" "..........x....."	/* 80 */
	"oooo....bz......" "bbbbbbbbvvvvvvvv"	/* a0 */
	"BBw.xxBZD.w..bx." "mmmmxxx.mmmmmmmm"	/* c0 */
	"bbbbbbbbddxb...." "x.xx..ff......mm";	/* e0 */

static const char two_byte[] =
	"mmmmx.....x.xm.B" "mmmmmmmmmmmmmmmm"	/* 00 */
	"mmmmxxxxmmmmmmmm" "........xxxxxxxx"	/* 20 */
	"mmmmmmmmmmmmmmmm" "mmmmmmmmmmmmmmmm"	/* 40 */
	"mmmmmmmmmmmmmmmm" "BBBBmmm.mmmmmmmm"	/* 60 */
	"dddddddddddddddd" "mmmmmmmmmmmmmmmm"	/* 80 */
	"...mBmxx...mBmmm" "mmmmmmmmmmBmmmmm"	/* a0 */
	"mmBmBBBm........" "mmmmmmmmmmmmmmmm"	/* c0 */
	"mmmmmmmmmmmmmmmm" "mmmmmmmmmmmmmmmm";	/* e0 */
/* clang-format on */

enum map { MAP_ONE, MAP_0F, MAP_0F38, MAP_0F3A };

/**
 * struct insn - the parts of an instruction
 * @p: the next byte to read.
 * @end: first byte behind the code that may be read.
 * @map: enum map of the opcode.
 * @vex: the instruction has a VEX, EVEX or XOP prefix.
 * @op: opcode.
 * @rep: the last of the prefixes 0xf2 and 0xf3, or the one that VEX encodes; 0 if there is none.
 * @small: there is an operand size prefix, 0x66.
 * @notrack: there is the prefix 0x3e.
 * @rex: REX bits, also from VEX; bit 6 is set if there is any such prefix.
 * @vvvv: the further register operand that VEX has.
 * @modrm: the ModRM byte.
 * @reg: register operand, with its REX bit.
 * @rm: register operand, or base register of the memory operand, with its REX bit.
 * @mem: the operand of @rm is in memory.
 * @plain: the memory operand is at a base register plus @disp.
 * @rip: the memory operand is relative to the next instruction.
 * @disp: displacement.
 * @imm: immediate, sign-extended.
 */
struct insn {
	const uint8_t *p, *end;
	uint8_t map;
	bool vex;
	uint8_t op;
	uint8_t rep;
	bool small, notrack;
	uint8_t rex, vvvv;
	uint8_t modrm, reg, rm;
	bool mem, plain, rip;
	int32_t disp;
	int64_t imm;
};

static bool take(struct insn *in, void *to, size_t n)
{
	if ((size_t)(in->end - in->p) < n)
		return false;
	memcpy(to, in->p, n);
	in->p += n;
	return true;
}

static bool take_signed(struct insn *in, unsigned int n, int64_t *ret)
{
	uint64_t v = 0;

	if (!take(in, &v, n))
		return false;
	*ret = n < 8 ? (int64_t)(v << (64 - 8 * n)) >> (64 - 8 * n) : (int64_t)v;
	return true;
}

/* Reads a VEX (c4, c5) or EVEX (62) prefix and the opcode. @in->p is behind the byte @first. */
static bool take_vex(struct insn *in, uint8_t first)
{
	static const uint8_t rep[] = { 0, 0, 0xf3, 0xf2 };
	uint8_t b[3] = { 0 }, map, w;

	if (!take(in, b, first == 0xc5 ? 1 : first == 0xc4 ? 2 : 3))
		return false;
	in->vex = true;
	/* The second byte holds inverted R, X, B. */
	in->rex = 0x40 | (b[0] & 0x80 ? 0 : 4);
	if (first != 0xc5) {
		in->rex |= (b[0] & 0x40 ? 0 : 2) | (b[0] & 0x20 ? 0 : 1);
		map = b[0] & (first == 0xc4 ? 0x1f : 7);
		w = b[1];
		in->rex |= w & 0x80 ? 8 : 0;
	} else {
		map = 1;
		w = b[0];
	}
	in->vvvv = ~(w >> 3) & 15;
	in->rep = rep[w & 3];
	in->small = (w & 3) == 1;
	if (map < 1 || map > 7 || map == 4 || map == 7)
		return false;
	/* Maps 5 and 6 (half precision) are laid out like 1 and 2. */
	in->map = map > 3 ? map - 4 : map;
	return take(in, &in->op, 1);
}

/*
 * Reads an XOP prefix and the opcode: 8f, with a next byte that can't be the ModRM of a pop. Only
 * maps 8 and 9 are known; their results are vectors.
 */
static bool take_xop(struct insn *in)
{
	uint8_t b[2];

	if (!take(in, b, 2))
		return false;
	in->vex = true;
	in->rex = 0x40 | (b[0] & 0x80 ? 0 : 4) | (b[0] & 0x20 ? 0 : 1) | (b[0] & 0x40 ? 0 : 2);
	in->map = (b[0] & 0x1f) == 8 ? MAP_0F3A : MAP_0F38;
	return (b[0] & 0x1f) <= 9 && take(in, &in->op, 1) && in->op >= 0x80 && in->op < 0xf0;
}

static bool take_opcode(struct insn *in)
{
	uint8_t b;

	for (;;) {
		if (!take(in, &b, 1))
			return false;
		switch (b) {
		case 0x66:
			in->small = true;
			continue;
		case 0xf2:
		case 0xf3:
			in->rep = b;
			continue;
		case 0x3e:
			in->notrack = true;
			continue;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x64:
		case 0x65:
		case 0xf0:
			continue;
		case 0x67:
			return false; /* 32-bit addresses are not used in this ABI */
		}
		break;
	}
	if ((b & 0xf0) == 0x40) {
		in->rex = b;
		if (!take(in, &b, 1))
			return false;
	} else if (b == 0xc4 || b == 0xc5 || b == 0x62) {
		return take_vex(in, b);
	} else if (b == 0x8f && in->p < in->end && *in->p & 0x18) {
		return take_xop(in);
	}
	in->op = b;
	if (b != 0x0f)
		return true;
	in->map = MAP_0F;
	if (!take(in, &in->op, 1))
		return false;
	if (in->op == 0x38 || in->op == 0x3a) {
		in->map = in->op == 0x38 ? MAP_0F38 : MAP_0F3A;
		return take(in, &in->op, 1);
	}
	return true;
}

static bool take_modrm(struct insn *in)
{
	uint8_t mod, base, sib;
	int64_t disp = 0;
	unsigned int n = 0;

	if (!take(in, &in->modrm, 1))
		return false;
	mod = in->modrm >> 6;
	base = in->modrm & 7;
	in->reg = (in->modrm >> 3 & 7) | (in->rex & 4 ? 8 : 0);
	in->rm = base | (in->rex & 1 ? 8 : 0);
	in->mem = mod != 3;
	if (!in->mem)
		return true;
	in->plain = true;
	if (base == 4) {
		if (!take(in, &sib, 1))
			return false;
		base = sib & 7;
		in->rm = base | (in->rex & 1 ? 8 : 0);
		/* Index 4 means that there is no index register. */
		in->plain = (sib >> 3 & 7) == 4 && !(in->rex & 2);
		if (mod == 0 && base == 5) {
			in->plain = false;
			n = 4;
		}
	} else if (mod == 0 && base == 5) {
		in->plain = false;
		in->rip = true;
		n = 4;
	}
	if (mod == 1)
		n = 1;
	else if (mod == 2)
		n = 4;
	if (n && !take_signed(in, n, &disp))
		return false;
	in->disp = disp;
	return true;
}

static bool take_rest(struct insn *in)
{
	char what = in->map == MAP_ONE	? one_byte[in->op] :
		    in->map == MAP_0F	? two_byte[in->op] :
		    in->map == MAP_0F38 ? 'm' :
					  'B';
	unsigned int n = 0;

	if (in->vex && in->map == MAP_0F && what != 'B')
		what = in->op == 0x77 ? '.' : 'm';
	if (strchr("mBZf", what) && !take_modrm(in))
		return false;
	switch (what) {
	case 'b':
	case 'B':
		n = 1;
		break;
	case 'z':
	case 'Z':
		n = in->small ? 2 : 4;
		break;
	case 'd':
		n = 4;
		break;
	case 'D':
		n = 3;
		break;
	case 'w':
		n = 2;
		break;
	case 'v':
		n = in->rex & 8 ? 8 : in->small ? 2 : 4;
		break;
	case 'o':
		n = 8;
		break;
	case 'f':
		if ((in->modrm & 0x38) <= 8)
			n = !(in->op & 1) ? 1 : in->small ? 2 : 4;
		break;
	case 'x':
		return false;
	}
	return !n || take_signed(in, n, &in->imm);
}

/* Returns the bit of the register whose number is in the opcode itself. */
static uint32_t in_opcode(const struct insn *in)
{
	return 1u << ((in->op & 7) | (in->rex & 1 ? 8 : 0));
}

/*
 * The written_*() functions return the general registers that an instruction without
 * special handling writes, one bit for each. @rm and @reg are the bits of its operands.
 * Opcodes stand in one line as the manual groups them.
 */
/* clang-format off */

static uint32_t written_one_byte(const struct insn *in, uint32_t rm, uint32_t reg)
{
	unsigned int group = in->modrm >> 3 & 7;
	uint8_t op = in->op;

	if (op < 0x40)
		return op >= 0x38 || (op & 7) > 3 ? 0 : op & 2 ? reg : rm;
	switch (op) {
	case 0x63: case 0x69: case 0x6b: case 0x8a: case 0x8b:
	case 0x8d:
		return reg;
	case 0x80: case 0x81: case 0x83:
		return group == 7 ? 0 : rm;
	case 0x86: case 0x87:
		return rm | reg;
	case 0x88: case 0x89: case 0x8c: case 0x8f:
	case 0xc0: case 0xc1: case 0xc6: case 0xc7:
	case 0xd0 ... 0xd3:
		return rm;
	case 0x91 ... 0x97:
	case 0xb8 ... 0xbf:
		return in_opcode(in);
	case 0xb0 ... 0xb7:
		return in->rex ? in_opcode(in) : 0;
	case 0xf6: case 0xf7:
		return group == 2 || group == 3 ? rm : 0;
	case 0xfe: case 0xff:
		return group < 2 ? rm : 0;
	}
	return 0;
}

static uint32_t written_two_byte(const struct insn *in, uint32_t rm, uint32_t reg)
{
	switch (in->op) {
	case 0x40 ... 0x4f:
	case 0x02: case 0x03: case 0x50: case 0xaf: case 0xb6:
	case 0xb7: case 0xb8: case 0xbc: case 0xbd: case 0xbe:
	case 0xbf: case 0xc5: case 0xd7:
		return reg;
	case 0x2c: case 0x2d:
		return in->rep ? reg : 0;
	case 0x90 ... 0x9f:
		return in->rex ? rm : rm & 0xf;
	case 0x00: case 0x01: case 0x1e: case 0x20: case 0x21:
	case 0xa4: case 0xa5: case 0xab: case 0xac: case 0xad:
	case 0xae: case 0xb0: case 0xb1: case 0xb3: case 0xbb:
	case 0xc7:
		return rm;
	case 0xba:
		return (in->modrm >> 3 & 7) > 4 ? rm : 0;
	case 0x7e:
		return in->rep == 0xf3 ? 0 : rm;
	case 0xc0: case 0xc1:
		return rm | reg;
	case 0xc8 ... 0xcf:
		return in_opcode(in);
	}
	return 0;
}

/* Handles instructions with a VEX or EVEX prefix; few of them write general registers. */
static uint32_t written_vex(const struct insn *in, uint32_t rm, uint32_t reg)
{
	switch (in->map << 8 | in->op) {
	case MAP_0F << 8 | 0x7e:
		return in->rep != 0xf3 ? rm : 0;
	case MAP_0F << 8 | 0x2c: case MAP_0F << 8 | 0x2d: case MAP_0F << 8 | 0x50:
	case MAP_0F << 8 | 0x78: case MAP_0F << 8 | 0x79: case MAP_0F << 8 | 0x93:
	case MAP_0F << 8 | 0xc5: case MAP_0F << 8 | 0xd7:
	case MAP_0F38 << 8 | 0xf2: case MAP_0F38 << 8 | 0xf5: case MAP_0F38 << 8 | 0xf7:
	case MAP_0F3A << 8 | 0xf0:
		return reg;
	case MAP_0F38 << 8 | 0xf3:
		return 1u << in->vvvv;
	case MAP_0F38 << 8 | 0xf6:
		return reg | 1u << in->vvvv;
	case MAP_0F3A << 8 | 0x14 ... MAP_0F3A << 8 | 0x17:
		return rm;
	}
	return 0;
}
/* clang-format on */

static uint32_t written(const struct insn *in)
{
	uint32_t rm = in->mem ? 0 : 1u << in->rm, reg = 1u << in->reg;
	uint8_t op = in->op;
	bool byte = in->map == MAP_ONE && !(op & 1) && op != 0x8c && !(op >= 0x90 && op <= 0x97);

	/* ah, ch, dh and bh have the numbers of sp, bp, si and di. */
	if (byte && !in->rex)
		rm &= 0xf, reg &= 0xf;
	if (in->vex)
		return written_vex(in, rm, reg);
	switch (in->map) {
	case MAP_ONE:
		return written_one_byte(in, rm, reg);
	case MAP_0F:
		return written_two_byte(in, rm, reg);
	case MAP_0F38:
		return op >= 0xf0 ? reg : 0;
	default:
		return op >= 0x14 && op <= 0x17 ? rm : 0;
	}
}

static int tracked(unsigned int reg)
{
	return reg == RSP ? TRACK_SP : reg == RBP ? TRACK_FP : -1;
}

static bool push(struct effect *e, int reg)
{
	effect_add(e, EFFECT_SET, TRACK_SP, TRACK_SP, -8);
	if (reg >= 0)
		effect_add(e, EFFECT_STORE, reg, TRACK_SP, 0);
	return true;
}

static bool pop(struct effect *e, int reg)
{
	if (reg == TRACK_SP)
		return effect_add(e, EFFECT_LOSE, TRACK_SP, TRACK_SP, 0);
	if (reg >= 0)
		effect_add(e, EFFECT_LOAD, reg, TRACK_SP, 0);
	return effect_add(e, EFFECT_SET, TRACK_SP, TRACK_SP, 8);
}

static bool flow(struct effect *e, int kind, uint64_t target)
{
	e->flow = kind;
	e->target = target;
	return true;
}

static bool ret(struct effect *e, int64_t bytes)
{
	effect_add(e, EFFECT_LOAD, TRACK_RA, TRACK_SP, 0);
	effect_add(e, EFFECT_SET, TRACK_SP, TRACK_SP, 8 + (uint16_t)bytes);
	return flow(e, FLOW_RETURN, 0);
}

/* Decodes opcode 0xff: calls, jumps and pushes of the content of a register or memory. */
static bool group_five(const struct insn *in, struct effect *e)
{
	switch (in->modrm >> 3 & 7) {
	case 0:
	case 1:
		return false;
	case 2:
		return flow(e, FLOW_CALL, 0);
	case 4:
		if (in->rip)
			return flow(e, FLOW_TAIL, 0);
		return flow(e, in->notrack ? FLOW_STOP : FLOW_UNSURE, 0);
	case 6:
		return push(e, in->mem ? -1 : tracked(in->rm));
	default:
		return flow(e, FLOW_STOP, 0);
	}
}

/*
 * Decodes instructions of control flow, and those that push or pop. Returns false if it is another
 * instruction.
 */
static bool special(const struct insn *in, uint64_t next, struct effect *e)
{
	unsigned int low = (in->op & 7) | (in->rex & 1 ? 8 : 0);

	if (in->vex || in->map > MAP_0F)
		return false;
	if (in->map == MAP_0F) {
		if (in->op >= 0x80 && in->op <= 0x8f)
			return flow(e, FLOW_BRANCH, next + in->imm);
		if (in->op == 0xa0 || in->op == 0xa8)
			return push(e, -1);
		if (in->op == 0xa1 || in->op == 0xa9)
			return pop(e, -1);
		if (in->op == 0x0b || in->op == 0xb9 || in->op == 0xff)
			return flow(e, FLOW_STOP, 0);
		return false;
	}
	switch (in->op) {
	case 0x50 ... 0x57:
		return push(e, tracked(low));
	case 0x58 ... 0x5f:
		return pop(e, tracked(low));
	case 0x68:
	case 0x6a:
	case 0x9c:
		return push(e, -1);
	case 0x9d:
		return pop(e, -1);
	case 0x8f:
		return in->mem ? pop(e, -1) : pop(e, tracked(in->rm));
	case 0x70 ... 0x7f:
	case 0xe0 ... 0xe3:
		return flow(e, FLOW_BRANCH, next + in->imm);
	case 0xc2:
		return ret(e, in->imm);
	case 0xc3:
		return ret(e, 0);
	case 0xc9:
		effect_add(e, EFFECT_SET, TRACK_SP, TRACK_FP, 8);
		return effect_add(e, EFFECT_LOAD, TRACK_FP, TRACK_FP, 0);
	case 0xe8:
		/* A call of the next instruction only pushes the address, to get the rip. */
		return in->imm ? flow(e, FLOW_CALL, next + in->imm) : push(e, -1);
	case 0xe9:
	case 0xeb:
		return flow(e, FLOW_JUMP, next + in->imm);
	case 0xc8:
	case 0xca:
	case 0xcb:
	case 0xcc:
	case 0xcf:
	case 0xf1:
	case 0xf4:
		return flow(e, FLOW_STOP, 0);
	case 0xff:
		return group_five(in, e);
	}
	return false;
}

/* Decodes moves and sums of rsp and rbp. Returns false if it is another instruction. */
static bool moves(const struct insn *in, struct effect *e)
{
	int reg = tracked(in->reg), rm = tracked(in->rm);
	unsigned int group = in->modrm >> 3 & 7;

	if (in->vex || in->map != MAP_ONE || !(in->rex & 8) || in->small)
		return false;
	switch (in->op) {
	case 0x81:
	case 0x83:
		if (in->mem || rm < 0 || (group != 0 && group != 5))
			return false;
		return effect_add(e, EFFECT_SET, rm, rm, group ? -in->imm : in->imm);
	case 0x89:
		if (in->mem && in->plain && rm >= 0 && reg >= 0)
			return effect_add(e, EFFECT_STORE, reg, rm, in->disp);
		if (in->mem || rm < 0 || reg < 0)
			return false;
		return effect_add(e, EFFECT_SET, rm, reg, 0);
	case 0x8b:
		if (reg < 0 || rm < 0)
			return false;
		if (in->mem && in->plain)
			return effect_add(e, EFFECT_LOAD, reg, rm, in->disp);
		return in->mem ? false : effect_add(e, EFFECT_SET, reg, rm, 0);
	case 0x8d:
		if (reg < 0 || rm < 0 || !in->plain)
			return false;
		return effect_add(e, EFFECT_SET, reg, rm, in->disp);
	}
	return false;
}

bool x86_decode(const uint8_t *code, size_t len, uint64_t pc, struct effect *e)
{
	struct insn in = { .p = code, .end = code + min(len, (size_t)15) };
	uint32_t regs;

	if (!take_opcode(&in) || !take_rest(&in))
		return false;
	e->len = in.p - code;
	if (special(&in, pc + e->len, e) || moves(&in, e))
		return true;
	regs = written(&in);
	if (regs & 1u << RSP)
		effect_add(e, EFFECT_LOSE, TRACK_SP, TRACK_SP, 0);
	if (regs & 1u << RBP)
		effect_add(e, EFFECT_LOSE, TRACK_FP, TRACK_FP, 0);
	return true;
}
