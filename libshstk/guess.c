// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * guess.c - leaves a frame that no unwind information describes, by guesses that are verified; see
 * guess.h.
 *
 * Each guess must lead to an address behind a call. The words that are read on the way may be left
 * over from earlier calls, so no guess ends a trace. Only a rule does, or a frame record of zeros
 * where the code says that it keeps one.
 */
#include <errno.h>

#include "cursor.h"
#include "epilogue.h"
#include "guess.h"
#include "paths.h"
#include "return_probes.h"
#include "scratch.h"

/* The largest number of instructions in an entry of a PLT, up to its jump. */
#define STUB_MAX 6
/* The number of words of the stack in which the start of the program is searched. */
#define START_WORDS 32
/* The largest distance, in bytes, by which a frame that v->shape describes may lie further out. */
#define SLACK_MAX 64
/* The bytes that arguments outside of registers may take: Java has up to 255 arguments. */
#define ROOM_MAX 4096
/* The number of words of a frame that are searched. */
#define OVER_MAX 4096
/* The largest size, in bytes, of a function that was just called and has saved nothing. */
#define HELPER_MAX 4096

/* Moves to the caller after a call to an address without code: the call has just happened. */
static noinline_for_stack int guess_wild_call(const struct view *v, struct cursor *c)
{
	const struct machine *m = v->m;
	struct regs next = c->regs;
	uint64_t ra;
	int err;

	if (m->ra_in_reg) {
		if (!cursor_knows(c, m->ra))
			return -SHSTK_END_NO_RULE;
		ra = cursor_reg(c, m->ra);
	} else {
		err = cursor_read(v, cursor_reg(c, m->sp), &ra);
		if (err)
			return err;
		cursor_set(&next, m->sp, cursor_reg(c, m->sp) + 8);
	}
	if (!is_after_call(v, ra))
		return -SHSTK_END_NO_RULE;
	err = cursor_leave(v, c, &next, ra);
	if (!err)
		cursor_guessed(c);
	return err;
}

/* A frame whose caller is to be found from its code. */
struct epilogue_of {
	const struct view *v;
	struct cursor *c;
	struct module *mod;
};

static const uint8_t *code_bytes(void *arg, uint64_t pc, size_t *len)
{
	const struct epilogue_of *of = arg;
	size_t before;

	return view_code(of->v, of->mod, pc, &before, len);
}

static bool code_covered(void *arg, uint64_t pc)
{
	const struct epilogue_of *of = arg;

	return module_rule(of->mod, pc, true) != RULE_NONE;
}

static bool collect(void *arg, uint64_t rule, bool lost_fp)
{
	return !paths_add(arg, rule, lost_fp);
}

static inline bool follow(const struct epilogue_of *of, epilogue_fn found, void *arg)
{
	const struct code code = { code_bytes, code_covered, (void *)of };

	return epilogue_rules(of->v->m, &code, cursor_reg(of->c, REG_PC), of->c->innermost, found,
			      arg);
}

/*
 * Returns true if the paths of the frame's code are kept. They are not for code that may be
 * replaced by other code in the same place.
 */
static bool is_kept(const struct epilogue_of *of)
{
	return of->v->remembers && !of->c->innermost && of->mod->img.nload;
}

/* Stores in @room the paths of the code of @of, and keeps them. */
static inline void know_paths(const struct epilogue_of *of, struct paths *room)
{
	uint64_t pc = cursor_reg(of->c, REG_PC);

	if (paths_find(pc, of->v->gen, room))
		return;
	room->n = room->lost = 0;
	follow(of, collect, room);
	paths_keep(pc, of->v->gen, room);
}

/* Does what epilogue_rules() does, with the paths that are kept if there are any. */
static noinline_for_stack bool each_path(const struct epilogue_of *of, struct paths *room,
					 epilogue_fn found, void *arg)
{
	if (!is_kept(of))
		return follow(of, found, arg);
	know_paths(of, room);
	if (room->n > PATHS_MOST)
		return follow(of, found, arg);
	for (uint32_t i = 0; i < room->n; i++)
		if (found(arg, room->rule[i], room->lost >> i & 1))
			return true;
	return false;
}

uint64_t call_target(const struct view *v, uint64_t ra)
{
	/* The length of a direct call, in bytes. */
	const size_t call = v->m->insn_align == 1 ? 5 : 4;
	struct effect e = { .len = 0 };
	size_t before = 0, after = 0;
	struct module *mod = v->find(v->arg, ra - call);
	const uint8_t *code;

	code = mod ? view_code(v, mod, ra - call, &before, &after) : NULL;
	if (!code || !v->m->decode(code, after, ra - call, &e) || e.len != call ||
	    e.flow != FLOW_CALL)
		return 0;
	return e.target;
}

bool call_is_forwarded(const struct view *v, uint64_t target)
{
	struct module *mod = v->find(v->arg, target);
	unsigned int i;

	for (i = 0; mod && i < STUB_MAX; i++) {
		struct effect e = { .len = 0 };
		size_t before, len;
		const uint8_t *code = view_code(v, mod, target, &before, &len);

		if (!code || !v->m->decode(code, len, target, &e))
			return false;
		if (e.flow != FLOW_NEXT)
			return e.flow == FLOW_JUMP || e.flow == FLOW_TAIL;
		target += e.len;
	}
	return false;
}

/*
 * Returns true if the call in front of @ra may have led to @pc, which nothing describes. An old
 * return address on the stack mostly belongs to a call of another function. A call of a function
 * that ended in a jump to this one is taken for such a call, too.
 */
static bool leads_to(const struct view *v, uint64_t ra, uint64_t pc)
{
	uint64_t target = call_target(v, ra & ~v->pac_mask);
	struct module *mod;

	if (!target || call_is_forwarded(v, target))
		return true;
	mod = v->find(v->arg, target);
	return mod == v->find(v->arg, pc) && target <= pc &&
	       (!mod || module_rule(mod, target, true) == RULE_NONE);
}

/**
 * struct epilogue_guess - a search for a path on which the frame's function returns
 * @v: the program.
 * @from: the function's frame.
 * @found: receives the caller's frame.
 * @any: @found is set, at least by the first path, whose call may name another function.
 * @tried: number of paths that were tried.
 * @paths: room for the paths that are kept.
 */
struct epilogue_guess {
	const struct view *v;
	const struct cursor *from;
	struct cursor found;
	bool any;
	unsigned int tried;
	struct paths paths;
};

/* Returns true if @rule leads to a caller's frame whose call may have led here. */
static bool try_epilogue(void *arg, uint64_t rule, bool lost_fp)
{
	struct epilogue_guess *g = arg;
	struct cursor next = *g->from;
	bool called, first = !g->tried++;

	/* No path may end the trace, because it may belong to another function. */
	next.guessed = true;
	if (cursor_step_rule(g->v, &next, rule) ||
	    !is_after_any_call(g->v, cursor_reg(&next, REG_PC)))
		return false;
	if (lost_fp)
		next.regs.known &= ~(1ull << g->v->m->fp);
	cursor_guessed(&next);
	called = leads_to(g->v, cursor_reg(&next, REG_PC), cursor_reg(g->from, REG_PC));
	if (!called && !first)
		return false;
	g->found = next;
	g->any = true;
	return called;
}

static int guess_epilogue_in(void *mem, void *arg)
{
	const struct epilogue_of *of = arg;
	struct epilogue_guess *g = mem;

	g->v = of->v;
	g->from = of->c;
	g->any = false;
	g->tried = 0;
	each_path(of, &g->paths, try_epilogue, g);
	if (!g->any)
		return -SHSTK_END_NO_RULE;
	*of->c = g->found;
	return 0;
}

/* Moves to the caller by what the code says about its return. */
static int guess_epilogue(const struct view *v, struct cursor *c, struct module *mod)
{
	struct epilogue_of of = { v, c, mod };

	return scratch_call(sizeof(struct epilogue_guess), guess_epilogue_in, &of);
}

/* Moves to the caller from a stub of the linker, for which the machine knows the rule. */
static noinline_for_stack int step_stub(const struct view *v, struct cursor *c, struct module *mod)
{
	uint64_t rule = RULE_NONE;
	const uint8_t *code;
	size_t before, len;

	if (!v->m->stub_rule || !c->innermost)
		return -SHSTK_END_NO_RULE;
	code = module_code(mod, cursor_reg(c, REG_PC), &before, &len);
	if (code)
		rule = v->m->stub_rule(code, before, len);
	return rule == RULE_NONE ? -SHSTK_END_NO_RULE : cursor_step_rule(v, c, rule);
}

/*
 * Leaves the code behind the system call of clone(), which C libraries do not describe. A new
 * thread has no caller, and the word at its sp may be anything. For its creator, the return address
 * is the word at sp.
 */
static int step_clone(const struct view *v, struct cursor *c, struct module *mod)
{
	const unsigned int result = 0; /* DWARF number of rax */
	const uint8_t *code;
	size_t before, len;
	enum clone_code kind;

	if (!v->m->clone_code || !c->innermost || !cursor_knows(c, result))
		return -SHSTK_END_NO_RULE;
	code = module_code(mod, cursor_reg(c, REG_PC), &before, &len);
	kind = code ? v->m->clone_code(code, before, len) : CLONE_NONE;
	if (kind == CLONE_NONE)
		return -SHSTK_END_NO_RULE;
	if (!cursor_reg(c, result))
		return STEP_COMPLETE;
	if (kind == CLONE_TESTS)
		return -SHSTK_END_NO_RULE;
	return cursor_step_rule(v, c, RULE_SP | RULE_RA_SAVED | RULE_CFA(8) | RULE_RA_AT(-8));
}

static bool is_record_rule(void *arg, uint64_t rule, bool lost_fp)
{
	const struct machine *m = arg;
	int cfa = rule_cfa_off(rule);

	return !lost_fp && RULE_KIND(rule) == RULE_FP && rule & RULE_RA_SAVED &&
	       rule & RULE_FP_SAVED && cfa + rule_fp_off(rule) == m->record_off &&
	       cfa + rule_ra_off(rule) == m->record_off + 8;
}

/* Returns true if the code of the function returns by a frame record at fp. */
static noinline_for_stack bool keeps_record(const struct view *v, struct cursor *c,
					    struct module *mod)
{
	struct epilogue_of of = { v, c, mod };
	struct paths room;

	return mod && mod->img.nload && each_path(&of, &room, is_record_rule, (void *)v->m);
}

/*
 * Returns the caller's stack pointer, where @sp is the end of the frame record at @at. An
 * interpreter that compiled code called may have made room for arguments between its record and its
 * caller's frame. The word below its record then tells where that frame ends, and compiled code
 * needs this exact value.
 */
static noinline_for_stack uint64_t called_from(const struct view *v, uint64_t at, uint64_t ra,
					       uint64_t sp)
{
	struct shstk_frame_shape shape = { .size = sizeof(shape) };
	struct module *mod = v->shape ? v->find(v->arg, ra - 1) : NULL;
	uint64_t noted;

	if (!mod || mod->img.nload || v->shape(v->shape_arg, ra, false, &shape) ||
	    cursor_read(v, at - 8, &noted))
		return sp;
	return noted >= sp && noted - sp < ROOM_MAX && noted % 8 == 0 ? noted : sp;
}

/*
 * Returns true if a return address lies between the frame and the frame record at @at, or if that
 * cannot be read. Frames without a record may lie there. The record would then belong to the code
 * that called them (as code that calls into Mono), and to use it would skip these frames. Nothing
 * is searched if v->shape is set: it describes such frames (HotSpot's), and all other code has
 * records.
 */
static bool steps_over(const struct view *v, const struct cursor *c, uint64_t at)
{
	uint64_t sp = cursor_reg(c, v->m->sp), word;
	unsigned int i;

	for (i = 0; v->generated && !v->shape && i < OVER_MAX && sp + 8 * i < at; i++) {
		struct module *mod;

		if (cursor_read(v, sp + 8 * i, &word))
			return true;
		mod = v->find(v->arg, word - 1);
		if (mod && module_is_code(mod, word - 1) && is_after_any_call(v, word))
			return true;
	}
	return false;
}

/* Moves to the caller by a frame record: the caller's fp, then the return address. */
static noinline_for_stack int guess_record(const struct view *v, struct cursor *c,
					   struct module *mod)
{
	const struct machine *m = v->m;
	struct regs next = c->regs;
	uint64_t fp = cursor_reg(c, m->fp), at = fp + m->record_off;
	uint64_t next_fp, ra;
	int err;

	if (!cursor_knows(c, m->fp) || fp & 7 || at < cursor_reg(c, m->sp) ||
	    cursor_read(v, at, &next_fp) || cursor_read(v, at + 8, &ra))
		return -SHSTK_END_NO_RULE;
	/* Zeros may be anything and fp any number, unless the code says that it keeps a record. */
	if (!(ra & ~v->pac_mask) && !next_fp && keeps_record(v, c, mod))
		return STEP_COMPLETE;
	/* For code made at run time leads_to() is not asked: it is entered by jumps, from stubs. */
	if (!is_after_call(v, ra) ||
	    ((!mod || mod->img.nload) && !leads_to(v, ra, cursor_reg(c, REG_PC))))
		return -SHSTK_END_NO_RULE;
	if (mod && !mod->img.nload && steps_over(v, c, at))
		return -SHSTK_END_NO_RULE;
	next.known = 0;
	cursor_set(&next, m->fp, next_fp);
	/*
	 * x86 and riscv keep the record at the upper end of the frame. arm64 keeps it at the lower
	 * end, in the caller's frame, too: so the caller's sp is its fp, as compilers lay out
	 * frames of a fixed size.
	 */
	if (!m->record_low)
		cursor_set(&next, m->sp, called_from(v, at, ra, at + 16));
	else
		cursor_set(&next, m->sp, next_fp > fp ? next_fp : fp + 16);
	err = cursor_leave(v, c, &next, ra);
	if (!err)
		cursor_guessed(c);
	return err;
}

/*
 * The arguments of guess_leaf(), which serves frames whose return address is still in its register.
 * After a call that register would point into the present function, but it points into another
 * module. The caller's stack pointer is either this frame's sp or its fp: the one that leads on to
 * a return address.
 */
struct leaf {
	const struct view *v;
	struct cursor *c;
	step_fn step;
};

struct leaf_room {
	struct cursor caller, next;
	struct regs regs;
};

static int guess_leaf_in(void *mem, void *arg)
{
	const struct leaf *leaf = arg;
	const struct view *v = leaf->v;
	struct cursor *c = leaf->c;
	struct leaf_room *room = mem;
	const struct machine *m = v->m;
	const uint64_t sp[] = { cursor_reg(c, m->sp), cursor_reg(c, m->fp) };
	uint64_t ra = cursor_reg(c, m->ra) & ~v->pac_mask;
	unsigned int i;

	if (!c->innermost || !cursor_knows(c, m->ra) || !is_after_call(v, ra) ||
	    v->find(v->arg, ra - 1) == v->find(v->arg, cursor_reg(c, REG_PC)))
		return -SHSTK_END_NO_RULE;
	for (i = 0; i < ARRAY_SIZE(sp); i++) {
		uint8_t mark;

		room->caller = *c;
		room->regs = c->regs;
		cursor_set(&room->regs, m->sp, sp[i]);
		if ((i && !cursor_knows(c, m->fp)) ||
		    cursor_leave(v, &room->caller, &room->regs, ra))
			continue;
		cursor_guessed(&room->caller);
		room->next = room->caller;
		if (!leaf->step(v, &room->next, &mark) &&
		    is_after_call(v, cursor_reg(&room->next, REG_PC))) {
			*c = room->caller;
			return 0;
		}
	}
	return -SHSTK_END_NO_RULE;
}

static noinline_for_stack int guess_leaf(const struct view *v, struct cursor *c, step_fn step)
{
	struct leaf leaf = { v, c, step };

	if (!v->m->ra_in_reg)
		return -SHSTK_END_NO_RULE;
	return scratch_call(sizeof(struct leaf_room), guess_leaf_in, &leaf);
}

/* Returns true if a frame record lies at the caller's fp and the next record lies further out. */
static bool is_record(const struct view *v, const struct cursor *c)
{
	uint64_t fp = cursor_reg(c, v->m->fp), next;

	return cursor_knows(c, v->m->fp) && fp >= cursor_reg(c, v->m->sp) &&
	       !cursor_read(v, fp + v->m->record_off, &next) && next > fp;
}

/*
 * Leaves a frame of the given shape. The return address must be behind a call, as far as that can
 * be checked. Its code must be described by a file or by v->shape, or have a frame record.
 */
static int leave_shape(const struct view *v, struct cursor *c, uint32_t cfa, bool fp_saved)
{
	uint64_t rule = RULE_SP | RULE_CFA(cfa) | RULE_RA_SAVED | RULE_RA_AT(-8), ra;
	struct cursor next = *c;
	struct module *mod;
	int err;

	if (fp_saved)
		rule |= RULE_FP_SAVED | RULE_FP_AT(-16);
	next.guessed = true;
	err = cursor_step_rule(v, &next, rule);
	if (err)
		return err;
	ra = cursor_reg(&next, REG_PC);
	mod = v->find(v->arg, ra - 1);
	if (!is_after_call(v, ra) || (!(mod && mod->img.nload) && !is_record(v, &next) &&
				      v->shape(v->shape_arg, ra, false, NULL)))
		return -SHSTK_END_BAD_RULE;
	*c = next;
	cursor_guessed(c);
	return 0;
}

/* Moves to the caller by the frame's shape, which v->shape tells. */
static noinline_for_stack int guess_shape(const struct view *v, struct cursor *c)
{
	struct shstk_frame_shape shape = { .size = sizeof(shape) };
	int err = v->shape(v->shape_arg, cursor_reg(c, REG_PC), c->exact, &shape);

	if (err == -ENOENT)
		return -SHSTK_END_NO_RULE;
	if (err || shape.cfa < 8 || shape.cfa % 8 || shape.cfa >= RULE_CFA_MAX ||
	    shape.slack > SLACK_MAX)
		return -SHSTK_END_BAD_RULE;
	for (uint32_t more = 0; more <= shape.slack; more += 8) {
		err = leave_shape(v, c, shape.cfa + more, shape.fp_saved);
		if (!err)
			break;
	}
	return err;
}

/*
 * Returns true if @pc is in the code where the kernel starts the program and nothing describes it.
 */
static bool is_entry(struct module *mod, uint64_t pc)
{
	uint64_t entry = mod->img.entry + mod->bias;

	return pc - entry < 64 && module_rule(mod, entry, true) == RULE_NONE;
}

/* Returns true if @pc is where make_fcontext() of Boost.Context lets the outermost function of a stack return. */
static bool ends_context(const struct view *v, struct module *mod, uint64_t pc)
{
	const size_t at = v->m->context_at;
	size_t before, len;
	const uint8_t *code = module_code(mod, pc, &before, &len);

	return code && before >= at && machine_ends_context(v->m, code - at, len + at);
}

/*
 * Returns true if @pc is the first instruction of a function and no call lies in front of it.
 * Whoever built this stack wants that function to run last, as makecontext() does.
 */
static bool is_built(const struct view *v, struct module *mod, uint64_t pc)
{
	return !is_after_call(v, pc) &&
	       (module_rule(mod, pc, true) != RULE_NONE || ends_context(v, mod, pc));
}

/*
 * Moves from code that runs before main() in programs linked with musl to the code at which the
 * program starts. The former never returns, so none of its paths leads out. If the first address
 * behind a call further out lies in the code at which the program starts, that is the caller,
 * because nothing else can have called.
 */
static noinline_for_stack int guess_start(const struct view *v, struct cursor *c,
					  struct module *mod)
{
	struct regs next = { .known = 0 };
	uint64_t sp = cursor_reg(c, v->m->sp), ra;
	unsigned int i;
	int err;

	for (i = 0; i < START_WORDS; i++) {
		if (cursor_read(v, sp + 8 * i, &ra))
			break;
		if (!is_after_call(v, ra))
			continue;
		if (v->find(v->arg, ra) != mod || !is_entry(mod, ra))
			break;
		cursor_set(&next, v->m->sp, sp + 8 * i + 8);
		err = cursor_leave(v, c, &next, ra);
		if (!err)
			cursor_guessed(c);
		return err;
	}
	return -SHSTK_END_NO_RULE;
}

int guess_helper(const struct view *v, struct cursor *c)
{
	uint64_t pc = cursor_reg(c, REG_PC), ra, target;
	struct regs next = c->regs;
	int err;

	if (v->m->ra_in_reg || !c->innermost || !c->exact)
		return -SHSTK_END_BAD_PC;
	err = cursor_read(v, cursor_reg(c, v->m->sp), &ra);
	if (err)
		return -SHSTK_END_BAD_PC;
	target = is_after_any_call(v, ra) ? call_target(v, ra) : 0;
	if (!target || target > pc || pc - target >= HELPER_MAX ||
	    v->find(v->arg, target) != v->find(v->arg, pc))
		return -SHSTK_END_BAD_PC;
	cursor_set(&next, v->m->sp, cursor_reg(c, v->m->sp) + 8);
	err = cursor_leave(v, c, &next, ra);
	if (!err)
		cursor_guessed(c);
	return err;
}

/*
 * Returns whether the frame is the kernel's trampoline for probed returns or, if it is the innermost
 * one, anything on its page: instructions with a probe are stepped there, too.
 */
static bool is_probed(const struct view *v, const struct cursor *c)
{
	uint64_t pc = cursor_reg(c, REG_PC);

	return c->innermost ? v->probe_return && pc - v->probe_return < PROBED_PAGE_SIZE :
			      pc == v->probe_return;
}

int guess_caller(const struct view *v, struct cursor *c, struct module *mod, step_fn step)
{
	uint64_t pc = cursor_reg(c, REG_PC);
	int err;

	if (is_probed(v, c))
		return probed_leave(v, c, step);
	if (mod && mod->img.nload) {
		if (!c->exact && is_built(v, mod, pc))
			return c->guessed ? -SHSTK_END_BAD_PC : STEP_COMPLETE;
		err = step_stub(v, c, mod);
		if (err == -SHSTK_END_NO_RULE)
			err = step_clone(v, c, mod);
		if (err == -SHSTK_END_NO_RULE)
			err = guess_epilogue(v, c, mod);
		if (err != -SHSTK_END_NO_RULE)
			return err;
		if (is_entry(mod, pc))
			return STEP_COMPLETE;
	}
	if (c->innermost && !v->is_code(v->arg, pc))
		return guess_wild_call(v, c);
	if (v->shape && mod && !mod->img.nload && !v->m->ra_in_reg) {
		err = guess_shape(v, c);
		if (err != -SHSTK_END_NO_RULE)
			return err;
	}
	err = guess_leaf(v, c, step);
	if (err == -SHSTK_END_NO_RULE)
		err = guess_record(v, c, mod);
	if (err == -SHSTK_END_NO_RULE && mod && !mod->img.nload && v->generated)
		err = guess_epilogue(v, c, mod);
	if (err == -SHSTK_END_NO_RULE && !c->exact && mod && mod->img.nload)
		err = guess_start(v, c, mod);
	return err;
}
