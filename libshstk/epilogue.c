// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * epilogue.c - finds out where a function will return to, from its code alone; see epilogue.h.
 *
 * Paths are followed in the order of their cost, so that the nearest return comes first. A call
 * makes a path more expensive, because the call may not return; a jump through a register at its
 * end, still more. Each instruction is visited once.
 *
 * Behind a call that does not return (exit(), or an error case that was inlined) lies another
 * function, and the present function does not return on that path. Two things tell that a path has
 * left the function. One is unwind information, because the present function has none. The other
 * is, on x86, the alignment of the stack: it is the same at each call of a function, and a multiple
 * of 16 away from the CFA. A compiler may ignore that between functions of one file, so a path that
 * breaks this rule is tried last.
 */
#include "epilogue.h"
#include "scratch.h"

#define MAX_PATHS 12
#define MAX_VISITS 192
#define MAX_SAVED 4
#define COST_CALL 64
#define COST_UNSURE 512
#define COST_STRAYED 4096

enum value_kind {
	VALUE_UNKNOWN,
	VALUE_SP, /* the present stack pointer + off */
	VALUE_FP, /* the present frame pointer + off */
	VALUE_RA, /* the present value of the return address register */
	VALUE_AT_SP, /* the word at the present stack pointer + off */
	VALUE_AT_FP,
};

struct value {
	uint8_t kind;
	int32_t off;
};

/**
 * struct path - the state at one point of the code
 * @pc: address of the next instruction.
 * @cost: cost of the path so far.
 * @called: the path has passed a call.
 * @done: the function has returned.
 * @strayed: the stack was aligned differently at another call.
 * @call_sp: the stack pointer at a call on the path, or unknown.
 * @reg: values of the tracked registers.
 * @saved: places that were stored to on the path, and the values stored.
 * @nsaved: number of places in @saved.
 */
struct path {
	uint64_t pc;
	unsigned int cost;
	bool called;
	bool done;
	bool strayed;
	struct value call_sp;
	struct value reg[TRACKED];
	struct {
		struct value at;
		struct value v;
	} saved[MAX_SAVED];
	unsigned int nsaved;
};

struct epilogue_search {
	const struct machine *m;
	const struct code *code;
	uint64_t start;
	struct path paths[MAX_PATHS];
	unsigned int npaths;
	int32_t visited[MAX_VISITS];
	unsigned int nvisited;
};

static bool same(struct value a, struct value b)
{
	return a.kind == b.kind && a.off == b.off;
}

static struct value unknown(void)
{
	return (struct value){ VALUE_UNKNOWN, 0 };
}

static struct value add(struct value v, int32_t off)
{
	int32_t sum;

	if ((v.kind != VALUE_SP && v.kind != VALUE_FP) || __builtin_add_overflow(v.off, off, &sum))
		return unknown();
	v.off = sum;
	return v;
}

static struct value load(const struct path *p, struct value at)
{
	unsigned int i;

	for (i = p->nsaved; i-- > 0;)
		if (same(p->saved[i].at, at))
			return p->saved[i].v;
	if (at.kind == VALUE_SP)
		return (struct value){ VALUE_AT_SP, at.off };
	if (at.kind == VALUE_FP)
		return (struct value){ VALUE_AT_FP, at.off };
	return unknown();
}

static void store(struct path *p, struct value at, struct value v)
{
	unsigned int i;

	if (at.kind == VALUE_UNKNOWN)
		return;
	for (i = 0; i < p->nsaved; i++)
		if (same(p->saved[i].at, at))
			break;
	if (i == MAX_SAVED)
		return;
	p->saved[i].at = at;
	p->saved[i].v = v;
	p->nsaved = max(p->nsaved, i + 1);
}

static void apply(struct path *p, const struct effect *e)
{
	unsigned int i;

	for (i = 0; i < e->n; i++) {
		struct value *reg = &p->reg[e->ops[i].reg];
		struct value base = add(p->reg[e->ops[i].base], e->ops[i].off);

		switch (e->ops[i].op) {
		case EFFECT_SET:
			*reg = base;
			break;
		case EFFECT_LOAD:
			*reg = load(p, base);
			break;
		case EFFECT_STORE:
			store(p, base, *reg);
			break;
		default:
			*reg = unknown();
		}
	}
}

/*
 * Marks the instruction at @pc as visited. Returns false if it was visited already, or if there
 * were too many.
 */
static bool visit(struct epilogue_search *s, uint64_t pc)
{
	int64_t rel = pc - s->start;
	unsigned int i;

	if (rel != (int32_t)rel || s->nvisited == MAX_VISITS)
		return false;
	for (i = 0; i < s->nvisited; i++)
		if (s->visited[i] == rel)
			return false;
	s->visited[s->nvisited++] = rel;
	return true;
}

static void fork_path(struct epilogue_search *s, const struct path *p, uint64_t pc)
{
	if (s->npaths == MAX_PATHS)
		return;
	s->paths[s->npaths] = *p;
	s->paths[s->npaths++].pc = pc;
}

/*
 * Returns true if two places relative to the same register are a multiple of 16 apart. Places
 * relative to different registers cannot be compared and count as true.
 */
static bool aligned_alike(struct value a, struct value b)
{
	return a.kind != b.kind || !((a.off ^ b.off) & 15);
}

static void behind_call(const struct epilogue_search *s, struct path *p)
{
	const struct value sp = p->reg[TRACK_SP];

	p->cost += COST_CALL;
	p->called = true;
	if (s->m->ra_in_reg)
		p->reg[TRACK_RA] = unknown();
	if (sp.kind != VALUE_SP && sp.kind != VALUE_FP)
		return;
	if (p->call_sp.kind == VALUE_UNKNOWN)
		p->call_sp = sp;
	else
		p->strayed |= !aligned_alike(p->call_sp, sp);
}

/* Ends a path: the function has returned, so the stack pointer is its CFA. */
static bool end_path(const struct epilogue_search *s, struct path *p)
{
	if (!s->m->ra_in_reg && p->call_sp.kind != VALUE_UNKNOWN)
		p->strayed |= !aligned_alike(p->call_sp, p->reg[TRACK_SP]);
	if (p->strayed)
		p->cost += COST_STRAYED;
	p->done = true;
	return true;
}

/*
 * Returns true if the code has removed its frame record, so that the return address is on top of
 * the stack. Code that V8 makes does this first, then removes as many arguments as its caller
 * passed, with the return address in a register.
 */
static bool has_left(const struct epilogue_search *s, const struct path *p)
{
	const struct value *sp = &p->reg[TRACK_SP], *fp = &p->reg[TRACK_FP];

	return !s->m->ra_in_reg && sp->kind == VALUE_FP && sp->off == 8 &&
	       fp->kind == VALUE_AT_FP && !fp->off;
}

/* Applies a return to the address on top of the stack. */
static void pop_return(struct path *p)
{
	struct effect e = { .len = 0 };

	effect_add(&e, EFFECT_LOAD, TRACK_RA, TRACK_SP, 0);
	effect_add(&e, EFFECT_SET, TRACK_SP, TRACK_SP, 8);
	apply(p, &e);
}

/* Follows @p by one instruction. Returns false if the path gives no rule. */
static bool advance(struct epilogue_search *s, struct path *p)
{
	struct effect e = { .len = 0 };
	const uint8_t *bytes;
	size_t len;

	/*
	 * The next function lies behind a call that does not return. If unwind information covers
	 * the address, it belongs to that next function, because the present one has none.
	 */
	if (p->called && s->code->covered(s->code->arg, p->pc))
		return false;
	if (!visit(s, p->pc))
		return false;
	bytes = s->code->bytes(s->code->arg, p->pc, &len);
	if (!bytes || !s->m->decode(bytes, len, p->pc, &e))
		return false;
	apply(p, &e);
	p->cost++;
	p->pc += e.len;
	switch (e.flow) {
	case FLOW_NEXT:
		if (!has_left(s, p))
			return true;
		pop_return(p);
		return end_path(s, p);
	case FLOW_CALL:
		behind_call(s, p);
		return true;
	case FLOW_BRANCH:
		fork_path(s, p, e.target);
		return true;
	case FLOW_JUMP:
		p->pc = e.target;
		p->called = false;
		return true;
	case FLOW_UNSURE:
		p->cost += COST_UNSURE;
		/* fall through */
	case FLOW_TAIL:
		if (s->m->ra_in_reg)
			return end_path(s, p);
		/* The function that is jumped to returns to our caller. */
		pop_return(p);
		/* fall through */
	case FLOW_RETURN:
		return end_path(s, p);
	default:
		return false;
	}
}

/* Computes the distance of @off from the CFA. Returns false if it does not fit into a rule. */
static bool distance(int32_t off, int32_t cfa, int32_t *ret)
{
	return !__builtin_sub_overflow(off, cfa, ret) && rule_off_fits(*ret);
}

/* Returns the rule that a finished path gives, or RULE_NONE. */
static uint64_t rule_of(const struct machine *m, const struct path *p, bool *lost_fp)
{
	const struct value *sp = &p->reg[TRACK_SP], *fp = &p->reg[TRACK_FP];
	const struct value *ra = &p->reg[TRACK_RA];
	int32_t ra_off = 0, fp_off = 0;
	uint64_t rule;
	uint8_t at;

	if (sp->kind != VALUE_SP && sp->kind != VALUE_FP)
		return RULE_NONE;
	if (sp->off & 7 || sp->off < 0 || sp->off >= RULE_CFA_MAX)
		return RULE_NONE;
	rule = sp->kind == VALUE_SP ? RULE_SP : RULE_FP;
	at = sp->kind == VALUE_SP ? VALUE_AT_SP : VALUE_AT_FP;
	if (ra->kind == at && distance(ra->off, sp->off, &ra_off))
		rule |= RULE_RA_SAVED;
	else if (ra->kind != VALUE_RA || !m->ra_in_reg)
		return RULE_NONE;
	*lost_fp = false;
	if (fp->kind == at && distance(fp->off, sp->off, &fp_off))
		rule |= RULE_FP_SAVED;
	else
		*lost_fp = fp->kind != VALUE_FP || fp->off;
	return rule | RULE_CFA(sp->off) | RULE_RA_AT(ra_off) | RULE_FP_AT(fp_off);
}

static struct path *cheapest(struct epilogue_search *s)
{
	struct path *best = &s->paths[0];
	unsigned int i;

	for (i = 1; i < s->npaths; i++)
		if (s->paths[i].cost < best->cost)
			best = &s->paths[i];
	return best;
}

static void begin(struct epilogue_search *s, uint64_t pc, bool innermost)
{
	struct path *p = &s->paths[0];

	s->start = pc;
	s->npaths = 1;
	s->nvisited = 0;
	*p = (struct path){ .pc = pc, .called = !innermost };
	p->reg[TRACK_SP].kind = VALUE_SP;
	p->reg[TRACK_FP].kind = VALUE_FP;
	if (s->m->ra_in_reg && innermost)
		p->reg[TRACK_RA].kind = VALUE_RA;
	if (!innermost)
		p->call_sp = p->reg[TRACK_SP];
}

/* The arguments of epilogue_rules(). */
struct rules_args {
	const struct machine *m;
	const struct code *code;
	uint64_t pc;
	bool innermost;
	epilogue_fn found;
	void *arg;
};

static int rules_in(void *mem, void *args)
{
	const struct rules_args *a = args;
	struct epilogue_search *s = mem;

	s->m = a->m;
	s->code = a->code;
	begin(s, a->pc, a->innermost);
	while (s->npaths) {
		struct path *p = cheapest(s);

		if (p->done) {
			bool lost_fp;
			uint64_t rule = rule_of(a->m, p, &lost_fp);

			if (rule != RULE_NONE && a->found(a->arg, rule, lost_fp))
				return true;
		} else if (advance(s, p)) {
			continue;
		}
		*p = s->paths[--s->npaths];
	}
	return false;
}

bool epilogue_rules(const struct machine *m, const struct code *code, uint64_t pc, bool innermost,
		    epilogue_fn found, void *arg)
{
	struct rules_args a = { m, code, pc, innermost, found, arg };

	return scratch_call(sizeof(struct epilogue_search), rules_in, &a);
}
