// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * decode.c - decodes arm64 instructions as far as epilogue.h needs them: what each does
 * to sp, x29, x30 and the flow of control.
 */
#include "epilogue.h"
#include "machine.h"

enum { X29 = 29, X30 = 30, SP = 31 };

static int64_t bits_signed(uint32_t v, unsigned int low, unsigned int n)
{
	return (int64_t)((uint64_t)v << (64 - low - n)) >> (64 - n);
}

/*
 * Returns the TRACK_* of register @reg, or -1 if it is not tracked, where register 31 is sp: in
 * addresses and immediate arithmetic. For tracked(), register 31 is xzr.
 */
static int tracked_sp(unsigned int reg)
{
	return reg == SP ? TRACK_SP : reg == X29 ? TRACK_FP : reg == X30 ? TRACK_RA : -1;
}

static int tracked(unsigned int reg)
{
	return reg == SP ? -1 : tracked_sp(reg);
}

static bool flow(struct effect *e, int kind, uint64_t target)
{
	e->flow = kind;
	e->target = target;
	return true;
}

/* Adds the load or store of one register, from or to memory at @base + @off. */
static void transfer(struct effect *e, bool load, unsigned int reg, int base, int64_t off)
{
	int t = tracked(reg);

	if (t < 0)
		return;
	if (base >= 0)
		effect_add(e, load ? EFFECT_LOAD : EFFECT_STORE, t, base, off);
	else if (load)
		effect_add(e, EFFECT_LOSE, t, t, 0);
}

/* Decodes ldp and stp of x registers: offset, pre-index and post-index. */
static bool pair(uint32_t v, struct effect *e)
{
	unsigned int mode = v >> 23 & 3, n = v >> 5 & 31;
	int64_t off = bits_signed(v, 15, 7) * 8;
	bool load = v & 1u << 22;
	int base = tracked_sp(n);
	int64_t at = mode == 1 ? 0 : off;

	/* An instruction that updates its base may not load the base too. */
	if (mode == 3 && base >= 0) {
		effect_add(e, EFFECT_SET, base, base, off);
		at = 0;
	}
	transfer(e, load, v & 31, base, at);
	transfer(e, load, v >> 10 & 31, base, at + 8);
	if (mode == 1 && base >= 0)
		effect_add(e, EFFECT_SET, base, base, off);
	return true;
}

/* Decodes ldr and str of one x register. */
static bool single(uint32_t v, struct effect *e)
{
	unsigned int n = v >> 5 & 31, reg = v & 31;
	bool load = v & 1u << 22;
	int base = tracked_sp(n);
	unsigned int mode = v >> 10 & 3;
	int64_t off;

	if (v & 1u << 24) {
		transfer(e, load, reg, base, (v >> 10 & 0xfff) * 8);
		return true;
	}
	if (v & 1u << 21) { /* register offset */
		transfer(e, load, reg, -1, 0);
		return true;
	}
	off = bits_signed(v, 12, 9);
	if (mode == 3 && base >= 0)
		effect_add(e, EFFECT_SET, base, base, off);
	transfer(e, load, reg, base, mode == 1 || mode == 3 ? 0 : off);
	if (mode == 1 && base >= 0)
		effect_add(e, EFFECT_SET, base, base, off);
	return true;
}

static bool add_immediate(uint32_t v, struct effect *e)
{
	int d = tracked_sp(v & 31), n = tracked_sp(v >> 5 & 31);
	int64_t imm = v >> 10 & 0xfff;

	if (v & 1u << 22)
		imm <<= 12;
	if (v & 1u << 30)
		imm = -imm;
	if (d < 0)
		return true;
	if (n < 0)
		return effect_add(e, EFFECT_LOSE, d, d, 0);
	return effect_add(e, EFFECT_SET, d, n, imm);
}

static bool branch(uint32_t v, uint64_t pc, struct effect *e)
{
	if ((v & 0xfc000000) == 0x14000000) /* b */
		return flow(e, FLOW_JUMP, pc + bits_signed(v, 0, 26) * 4);
	if ((v & 0xfc000000) == 0x94000000) /* bl */
		return flow(e, FLOW_CALL, pc + bits_signed(v, 0, 26) * 4);
	if ((v & 0xff000000) == 0x54000000 || /* b.cond, bc.cond */
	    (v & 0x7e000000) == 0x34000000) /* cbz, cbnz */
		return flow(e, FLOW_BRANCH, pc + bits_signed(v, 5, 19) * 4);
	if ((v & 0x7e000000) == 0x36000000) /* tbz, tbnz */
		return flow(e, FLOW_BRANCH, pc + bits_signed(v, 5, 14) * 4);
	if ((v & 0xfe000000) == 0xd6000000) {
		if ((v & 0xfffffc1f) == 0xd65f0000 && (v >> 5 & 31) == X30)
			return flow(e, FLOW_RETURN, 0);
		if ((v & 0xfffffbff) == 0xd65f0bff) /* retaa, retab */
			return flow(e, FLOW_RETURN, 0);
		if ((v & 0x00600000) == 0x00200000) /* blr, blraa, ... */
			return flow(e, FLOW_CALL, 0);
		if ((v & 0x00600000) == 0) /* br */
			return flow(e,
				    (v >> 5 & 31) >= 16 && (v >> 5 & 31) <= 17 ? FLOW_TAIL :
										 FLOW_UNSURE,
				    0);
		return flow(e, FLOW_STOP, 0);
	}
	/* brk, hlt, udf */
	if ((v & 0xffe0001f) == 0xd4200000 || (v & 0xffe0001f) == 0xd4400000 || !(v >> 16))
		return flow(e, FLOW_STOP, 0);
	return false;
}

bool arm64_decode(const uint8_t *code, size_t len, uint64_t pc, struct effect *e)
{
	uint32_t v;
	int d;

	if (len < 4)
		return false;
	memcpy(&v, code, 4);
	e->len = 4;
	if (branch(v, pc, e))
		return true;
	if ((v & 0xfe000000) == 0xa8000000) /* ldp, stp of x registers */
		return pair(v, e);
	if ((v & 0xfe800000) == 0xf8000000 || (v & 0xff800000) == 0xf9000000)
		return single(v, e);
	if ((v & 0xbf800000) == 0x91000000) /* add, sub of 64 bits */
		return add_immediate(v, e);
	/*
	 * This is hint #15. The other hints (nop, autiasp, ...) have no effect below, since their
	 * lowest bits are 31.
	 */
	if ((v & 0xffffffe0) == 0xd5032000 + 0x1e0)
		return true;
	d = tracked(v & 31);
	/* Data processing that writes its destination; instructions that only set flags have 31. */
	if (d >= 0 && ((v & 0x1c000000) == 0x10000000 || (v & 0x0e000000) == 0x0a000000))
		effect_add(e, EFFECT_LOSE, d, d, 0);
	/* Loads of narrower registers and other loads. */
	else if (d >= 0 && (v & 0x3a000000) == 0x38000000 && v & 3u << 22 && !(v & 1u << 26))
		effect_add(e, EFFECT_LOSE, d, d, 0);
	return true;
}
