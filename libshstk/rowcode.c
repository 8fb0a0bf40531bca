// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * rowcode.c - writes and reads the rules of a function as a short string of bytes; see rowcode.h.
 *
 * A function is a string of rows, each with the distance to the row before it:
 *
 *	byte 0	bits 0-2  enum row_op: how the rule differs from the last one
 *		bits 3-7  distance in units of the instructions' alignment; with 31
 *			  the rest of the distance follows as ULEB128
 *	ROW_CFA: ULEB128 cfa_off / 8
 *	ROW_OTHER: one byte, the low bits of the rule; for RULE_SP and RULE_FP
 *		also ULEB128 cfa_off / 8 and, where saved, -fp_off / 8, -ra_off / 8
 *		(this one only on machines with the return address in a register)
 *
 * A function begins with the rule that holds right after a call instruction, and
 * ends with ROW_END. The rows that are most frequent in compiled code (a push, a
 * pop, the return to the state before an epilogue) take one byte each.
 */
#include "rowcode.h"

enum row_op {
	ROW_UP, /* the CFA is 8 bytes further from sp */
	ROW_DOWN, /* the CFA is 8 bytes nearer to sp */
	ROW_BACK, /* the rule is the one before the last epilogue */
	ROW_END, /* the function ends */
	ROW_CFA, /* the CFA is at another distance from sp */
	ROW_PUSH_FP, /* the CFA is 8 bytes further from sp, and fp is saved at sp */
	ROW_FRAME, /* fp points at its saved value, below the return address */
	ROW_OTHER, /* any other rule */
};

#define DELTA_LONG 31

#define RULE_SAVED_FP(off) (RULE_FP_SAVED | RULE_FP_AT(off))
#define RULE_ALL_FP (RULE_FP_SAVED | RULE_FP_AT_ALL)
#define RULE_ALL_CFA RULE_CFA(-8)

static uint64_t saved_ra(const struct machine *m)
{
	return RULE_RA_SAVED | RULE_RA_AT(8 * m->ra_off);
}

/* Returns the state at the first instruction of a function, right after the call instruction. */
static struct rowcode_state state_at_entry(const struct machine *m)
{
	uint64_t rule = RULE_SP;

	if (!m->ra_in_reg)
		rule |= RULE_CFA(8) | saved_ra(m);
	return (struct rowcode_state){ .rule = rule, .body = rule };
}

static void state_next(struct rowcode_state *s, uint64_t rule)
{
	bool down = RULE_KIND(rule) == RULE_SP &&
		    (RULE_KIND(s->rule) == RULE_FP || rule_cfa_off(rule) < rule_cfa_off(s->rule));

	if (down && !s->down)
		s->body = s->rule;
	s->down = down;
	s->rule = rule;
}

static uint64_t rule_push_fp(uint64_t rule)
{
	rule += RULE_CFA(8);
	return (rule & ~RULE_ALL_FP) | RULE_SAVED_FP(-rule_cfa_off(rule));
}

static uint64_t rule_frame(const struct machine *m)
{
	return RULE_FP | RULE_CFA(16) | saved_ra(m) | RULE_SAVED_FP(-16);
}

void rowcode_begin(struct rowcode_writer *w, const struct machine *m, uint64_t start)
{
	w->m = m;
	w->loc = start;
	w->s = state_at_entry(m);
	w->full = false;
}

static void put(struct rowcode_writer *w, uint8_t byte)
{
	if (w->p == w->end)
		w->full = true;
	else
		*w->p++ = byte;
}

static void put_uleb(struct rowcode_writer *w, uint64_t v)
{
	while (v >= 0x80) {
		put(w, v | 0x80);
		v >>= 7;
	}
	put(w, v);
}

/* Returns the kind of the shortest row that turns the last rule into @rule. */
static enum row_op choose_op(const struct rowcode_writer *w, uint64_t rule)
{
	uint64_t last = w->s.rule;

	if (rule == RULE_NONE)
		return ROW_END;
	if (rule == w->s.body)
		return ROW_BACK;
	if (!w->m->ra_in_reg && rule == rule_frame(w->m))
		return ROW_FRAME;
	if (RULE_KIND(last) != RULE_SP)
		return ROW_OTHER;
	if (rule == last + RULE_CFA(8))
		return ROW_UP;
	if (rule == last - RULE_CFA(8))
		return ROW_DOWN;
	if (rule == rule_push_fp(last))
		return ROW_PUSH_FP;
	return (rule ^ last) & ~RULE_ALL_CFA ? ROW_OTHER : ROW_CFA;
}

static void put_other(struct rowcode_writer *w, uint64_t rule)
{
	put(w, RULE_FORM(rule));
	if (RULE_KIND(rule) != RULE_SP && RULE_KIND(rule) != RULE_FP)
		return;
	put_uleb(w, rule_cfa_off(rule) / 8);
	if (rule & RULE_FP_SAVED)
		put_uleb(w, -rule_fp_off(rule) / 8);
	if (rule & RULE_RA_SAVED && w->m->ra_in_reg)
		put_uleb(w, -rule_ra_off(rule) / 8);
}

void rowcode_put(struct rowcode_writer *w, uint64_t loc, uint64_t rule)
{
	uint64_t delta = (loc - w->loc) / w->m->insn_align;
	enum row_op op;

	if (rule == w->s.rule)
		return;
	if ((loc - w->loc) % w->m->insn_align)
		w->full = true; /* the address is not aligned like an instruction */
	op = choose_op(w, rule);
	put(w, op | min(delta, (uint64_t)DELTA_LONG) << 3);
	if (delta >= DELTA_LONG)
		put_uleb(w, delta - DELTA_LONG);
	if (op == ROW_CFA)
		put_uleb(w, rule_cfa_off(rule) / 8);
	if (op == ROW_OTHER)
		put_other(w, rule);
	w->loc = loc;
	state_next(&w->s, rule);
}

static uint64_t get_uleb(const uint8_t **p)
{
	unsigned int shift = 0;
	uint64_t v = 0;
	uint8_t byte;

	do {
		byte = *(*p)++;
		v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return v;
}

static uint64_t get_other(const struct machine *m, const uint8_t **p)
{
	uint64_t rule = *(*p)++;

	if (RULE_KIND(rule) != RULE_SP && RULE_KIND(rule) != RULE_FP)
		return rule;
	rule |= RULE_CFA(8 * get_uleb(p));
	if (rule & RULE_FP_SAVED)
		rule |= RULE_FP_AT(-8 * (int64_t)get_uleb(p));
	if (!m->ra_in_reg)
		rule |= saved_ra(m);
	else if (rule & RULE_RA_SAVED)
		rule |= RULE_RA_AT(-8 * (int64_t)get_uleb(p));
	return rule;
}

static uint64_t get_rule(const struct machine *m, const struct rowcode_state *s, enum row_op op,
			 const uint8_t **p)
{
	switch (op) {
	case ROW_UP:
		return s->rule + RULE_CFA(8);
	case ROW_DOWN:
		return s->rule - RULE_CFA(8);
	case ROW_BACK:
		return s->body;
	case ROW_CFA:
		return (s->rule & ~RULE_ALL_CFA) | RULE_CFA(8 * get_uleb(p));
	case ROW_PUSH_FP:
		return rule_push_fp(s->rule);
	case ROW_FRAME:
		return rule_frame(m);
	case ROW_OTHER:
		return get_other(m, p);
	case ROW_END:
		break;
	}
	return RULE_NONE;
}

uint64_t rowcode_find(const struct machine *m, const uint8_t *p, uint64_t start, uint64_t vaddr)
{
	struct rowcode_state s = state_at_entry(m);

	for (;;) {
		uint8_t b = *p++;
		uint64_t delta = b >> 3;

		if (delta == DELTA_LONG)
			delta += get_uleb(&p);
		start += delta * m->insn_align;
		if (start > vaddr)
			return s.rule;
		if ((b & 7) == ROW_END)
			return RULE_NONE;
		state_next(&s, get_rule(m, &s, b & 7, &p));
	}
}
