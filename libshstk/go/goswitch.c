// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * goswitch.c - steps from one stack of a Go program to another; see goswitch.h.
 *
 * Sources: golang/go, src/runtime/asm_amd64.s, asm_arm64.s, sys_linux_amd64.s,
 * sys_linux_arm64.s, src/runtime/cgocall.go, of Go 1.15 to 1.27.
 */
#include "gorule.h"
#include "goswitch.h"
#include "guess.h"

#define STACK_MAX (4ull << 30) /* most bytes of a goroutine's stack */
#define TLS_WORDS 512 /* most words at the thread pointer that are searched for g */
#define NEAR 128 /* most bytes by which a function that changes stacks aligns its own frame */

/* DWARF numbers of the registers that hold g, or sp while the vdso is called. */
enum {
	X86_RBP = 6,
	X86_R12 = 12,
	X86_R14 = 14,
	ARM64_R20 = 20,
	ARM64_R28 = 28,
};

/* ---- Reading g and m ---- */

bool goswitch_word(const struct view *v, uint64_t addr, uint64_t *ret)
{
	return addr && !(addr & 7) && !v->other.read(v->other.arg, addr, ret, 8);
}

static bool read_stack_of(const struct view *v, uint64_t g, struct range *ret)
{
	return goswitch_word(v, g + GO_G_STACK_LO, &ret->lo) &&
	       goswitch_word(v, g + GO_G_STACK_HI, &ret->hi) && ret->lo < ret->hi &&
	       ret->hi - ret->lo <= STACK_MAX;
}

/* Tells whether @g is a description that names thread @m. */
static bool runs_on(const struct view *v, uint64_t g, uint64_t m)
{
	struct range stack;
	uint64_t word;

	return goswitch_word(v, g + GO_G_M, &word) && word == m && read_stack_of(v, g, &stack);
}

/*
 * Makes @g the goroutine of @t if it is a goroutine and points at the thread. If only one of
 * the two is true, @t->doubt is set, except for a goroutine that the thread is giving up.
 */
static bool take_curg(const struct view *v, uint64_t g, struct gothread *t)
{
	uint64_t self, m;
	bool is_g, is_ours;

	if (!g || g == t->g0 || g & 7 || !goswitch_word(v, g + GO_G_M, &m) ||
	    !goswitch_word(v, g + GO_G_SCHED + GO_SCHED_G, &self))
		return false;
	is_g = self == g;
	is_ours = m == t->m;
	if (is_g && is_ours && read_stack_of(v, g, &t->curg_stack)) {
		t->curg = g;
		return true;
	}
	t->doubt |= is_ours || (is_g && m);
	return false;
}

/* Finds the goroutine of @t. Its place in m differs by 8 between releases. */
static void find_curg(const struct view *v, struct gothread *t)
{
	static const uint8_t places[] = { 184, 192 };
	uint64_t g;
	size_t i;

	t->curg = 0;
	t->doubt = false;
	for (i = 0; i < ARRAY_SIZE(places); i++)
		if (goswitch_word(v, t->m + places[i], &g) && take_curg(v, g, t))
			break;
	t->doubt &= !t->curg;
}

/* Finds the thread of @g, which may be a goroutine or g0. Returns false if @g is neither. */
static bool thread_of(const struct view *v, uint64_t g, struct gothread *t)
{
	if (!g || g & 7 || !goswitch_word(v, g + GO_G_M, &t->m) || !t->m || t->m & 7 ||
	    !goswitch_word(v, t->m + GO_M_G0, &t->g0) || !t->g0 || t->g0 & 7 ||
	    !runs_on(v, g, t->m) || !runs_on(v, t->g0, t->m))
		return false;
	find_curg(v, t);
	return true;
}

/* Finds the thread, if its g lies @i words from the thread pointer. */
static bool thread_at(const struct view *v, unsigned int i, struct gothread *t)
{
	uint64_t tp = v->thread_pointer, g;

	return goswitch_word(v, v->m == &machine_x86 ? tp - 8ull * i : tp + 8ull * (i - 1), &g) &&
	       thread_of(v, g, t);
}

/*
 * Finds the thread by g, which is a thread-local variable. The linker decided its place, which
 * is the same for all threads: below the thread pointer on x86, behind it on arm64, and next to
 * it unless there are other thread-local variables.
 */
static bool thread_by_tls(const struct view *v, struct gothread *t)
{
	int32_t known = load_relaxed(v->go_tls);
	int32_t i;

	if (!v->thread_pointer || known)
		return known && thread_at(v, known, t);
	for (i = 1; i <= TLS_WORDS; i++) {
		if (!thread_at(v, i, t))
			continue;
		store_relaxed(v->go_tls, i);
		return true;
	}
	return false;
}

/* The register of g comes last: while other code than Go's runs, it may hold another thread's g. */
bool goswitch_thread(const struct view *v, const struct cursor *c, struct gothread *t)
{
	return thread_by_tls(v, t) || thread_of(v, c->go_g, t);
}

/* ---- Stepping to a frame on another stack ---- */

/* The frame that is left, in a function of Go's table. */
struct goframe {
	const struct view *v;
	struct cursor *c;
	const struct module *mod;
	uint64_t vaddr;
};

static uint64_t frame_sp(const struct goframe *f)
{
	return cursor_reg(f->c, f->v->m->sp);
}

/* Steps out of the frame by its rule, as if its stack pointer were @sp. */
static int leave_at(const struct goframe *f, uint64_t sp)
{
	uint64_t rule = gorule_plain(&f->mod->go, f->vaddr), old = frame_sp(f);
	struct view other = *f->v;
	struct cursor *c = f->c;
	int err;

	if (RULE_KIND(rule) != RULE_SP)
		return -SHSTK_END_BAD_RULE;
	other.mem = other.other;
	cursor_set(&c->regs, other.m->sp, sp);
	c->lower.below = 0;
	err = cursor_step_rule(&other, c, rule);
	if (err)
		cursor_set(&c->regs, other.m->sp, old);
	else
		c->switched = sp != old;
	return err;
}

/* Continues with code that will run again at @pc, with stack pointer @sp. */
static int resume_at(const struct goframe *f, uint64_t pc, uint64_t sp)
{
	struct cursor *c = f->c;

	if (!pc || sp & 7 || !f->v->is_code(f->v->arg, pc))
		return -SHSTK_END_BAD_STACK;
	c->switched = sp != frame_sp(f);
	c->regs.known = 0;
	cursor_set(&c->regs, f->v->m->sp, sp);
	cursor_set(&c->regs, REG_PC, pc);
	if (!f->v->m->ra_in_reg)
		cursor_set(&c->regs, f->v->m->ra, pc);
	c->exact = true;
	c->innermost = true;
	c->ra_elsewhere = false;
	c->lower.below = 0;
	c->mark = SHSTK_MARK_PC;
	return 0;
}

static bool on_goroutine(const struct gothread *t, uint64_t sp)
{
	return t->curg && sp > t->curg_stack.lo && sp <= t->curg_stack.hi;
}

/*
 * Returns the sp that the goroutine had when it left its stack, or 0 if it did not leave it, or the
 * noted sp is wrong.
 */
static uint64_t saved_sp(const struct view *v, const struct gothread *t)
{
	uint64_t sp;

	if (!t->curg || !goswitch_word(v, t->curg + GO_G_SCHED + GO_SCHED_SP, &sp) || sp & 7 ||
	    !on_goroutine(t, sp))
		return 0;
	return sp;
}

static int step_systemstack(const struct goframe *f, const struct gothread *t)
{
	uint64_t sp;

	if (t->doubt)
		return -SHSTK_END_BAD_STACK;
	if (!t->curg || on_goroutine(t, frame_sp(f)))
		return GOSWITCH_ORDINARY;
	sp = saved_sp(f->v, t);
	return sp ? leave_at(f, sp) : -SHSTK_END_BAD_STACK;
}

/* Tells whether @pc lies in the function of the frame. */
static bool is_inside(const struct goframe *f, uint64_t pc)
{
	uint64_t vaddr = pc - f->mod->bias;
	struct gofunc func;

	return shstk_gopclntab_find(&f->mod->go, f->vaddr, &func) && vaddr >= func.entry &&
	       vaddr < func.end;
}

/*
 * Tells whether a function has lost its return address. On arm64 a function without a frame, which
 * does not return in the usual way, loses it when it calls another function: the call overwrites
 * the link register.
 */
static bool lost_link(const struct goframe *f)
{
	const struct machine *m = f->v->m;

	return m->ra_in_reg && (!f->c->innermost || (cursor_knows(f->c, m->ra) &&
						     is_inside(f, cursor_reg(f->c, m->ra) - 1)));
}

/*
 * Steps to the code that the goroutine's description names as the one to continue with, where the
 * frame is still on the goroutine's stack.
 */
static int leave_as_saved(const struct goframe *f, const struct gothread *t)
{
	const struct machine *m = f->v->m;
	struct cursor *c = f->c;
	struct regs next = c->regs;
	uint64_t pc;

	if (saved_sp(f->v, t) != frame_sp(f) ||
	    !goswitch_word(f->v, t->curg + GO_G_SCHED + GO_SCHED_PC, &pc) ||
	    !is_after_call(f->v, pc) || is_inside(f, pc - 1))
		return -SHSTK_END_BAD_STACK;
	next.known &= 1ull << m->sp | 1ull << m->fp;
	c->ra_elsewhere = true;
	return cursor_leave(f->v, c, &next, pc);
}

/* Steps out of mcall. What mcall calls never returns, so its frame is the outermost one of g0. */
static int step_mcall(const struct goframe *f, const struct gothread *t)
{
	if (!on_goroutine(t, frame_sp(f)))
		return STEP_COMPLETE;
	return lost_link(f) ? leave_as_saved(f, t) : GOSWITCH_ORDINARY;
}

/*
 * Restores the link register on arm64: where the code that asked for more stack returns to.
 * Its place in g.sched moved by 8 when a member in front of it was removed. The word at the
 * wrong place is not an address of code.
 */
static void restore_link(const struct goframe *f, const struct gothread *t)
{
	const struct machine *m = f->v->m;
	uint64_t link;
	int i;

	for (i = 32; m->ra_in_reg && i <= 40; i += 8) {
		if (!goswitch_word(f->v, t->curg + GO_G_SCHED + i, &link) || !link ||
		    !f->v->is_code(f->v->arg, link - 1))
			continue;
		cursor_set(&f->c->regs, m->ra, link);
		return;
	}
}

/*
 * Steps to the function that asks for more stack, on arm64. That function has no frame yet, and
 * its call has put the call's own return address into x30. Before, the function had saved its
 * return address in x3.
 */
static int leave_to_asker(const struct goframe *f, const struct gothread *t)
{
	enum { X3 = 3 };
	const struct machine *m = f->v->m;
	struct cursor *c = f->c;
	const uint64_t link = cursor_reg(c, X3);
	int err;

	(void)t;
	if (!m->ra_in_reg || !c->innermost || !cursor_knows(c, X3) || !cursor_knows(c, m->ra) ||
	    !f->v->is_code(f->v->arg, link - 1))
		return GOSWITCH_ORDINARY;
	err = resume_at(f, cursor_reg(c, m->ra), frame_sp(f));
	if (!err)
		cursor_set(&c->regs, m->ra, link);
	return err;
}

/* Steps out of morestack. The code that asked for more stack starts again on the new stack. */
static int step_morestack(const struct goframe *f, const struct gothread *t)
{
	const bool on_old = on_goroutine(t, frame_sp(f));
	uint64_t sp, pc;
	int err;

	/* Nothing is noted before it calls another function. */
	if (on_old && !lost_link(f))
		return leave_to_asker(f, t);
	if (!t->curg)
		return t->doubt ? -SHSTK_END_BAD_STACK : STEP_COMPLETE;
	sp = saved_sp(f->v, t);
	if (!sp || (on_old && sp != frame_sp(f)) ||
	    !goswitch_word(f->v, t->curg + GO_G_SCHED + GO_SCHED_PC, &pc))
		return -SHSTK_END_BAD_STACK;
	err = resume_at(f, pc, sp);
	if (!err)
		restore_link(f, t);
	return err;
}

/*
 * Steps out of gogo, whose last instructions already have the goroutine's sp. On arm64 nothing
 * leads back to the caller of gogo before that, and the link register is restored later than sp.
 */
static int step_gogo(const struct goframe *f, const struct gothread *t)
{
	const unsigned int ra = f->v->m->ra;
	const uint64_t link = cursor_reg(f->c, ra);
	const bool lost = lost_link(f), knows = f->c->innermost && cursor_knows(f->c, ra);
	uint64_t sp = frame_sp(f), pc;
	int err;

	if (!on_goroutine(t, sp))
		sp = lost ? saved_sp(f->v, t) : 0;
	if (!sp || !goswitch_word(f->v, t->curg + GO_G_SCHED + GO_SCHED_PC, &pc))
		return GOSWITCH_ORDINARY;
	err = resume_at(f, pc, sp);
	if (!err && lost)
		restore_link(f, t);
	else if (!err && knows && f->v->m->ra_in_reg)
		cursor_set(&f->c->regs, ra, link);
	return err;
}

/* Where asmcgocall notes, in its frame on g0, which stack it came from: offsets from sp. */
struct cgocall_place {
	uint8_t g, depth;
};

/* Returns the goroutine's sp if @p names a goroutine of the thread, otherwise 0. */
static uint64_t cgocall_goroutine(const struct goframe *f, const struct gothread *t,
				  const struct cgocall_place *p)
{
	uint64_t sp = frame_sp(f), g, depth, m, self;
	struct range stack;

	if (!goswitch_word(f->v, sp + p->depth, &depth) || depth & 7 ||
	    !goswitch_word(f->v, sp + p->g, &g) || !g || g & 7 ||
	    !goswitch_word(f->v, g + GO_G_M, &m) || (t->m && m != t->m) ||
	    !goswitch_word(f->v, g + GO_G_SCHED + GO_SCHED_G, &self) || self != g ||
	    !read_stack_of(f->v, g, &stack) || depth >= stack.hi - stack.lo)
		return 0;
	return stack.hi - depth;
}

/* Returns the sp on g0 if @p says that asmcgocall was called on g0, otherwise 0. */
static uint64_t cgocall_on_g0(const struct goframe *f, const struct cgocall_place *p)
{
	uint64_t sp = frame_sp(f), g, depth;

	if (!goswitch_word(f->v, sp + p->depth, &depth) || depth & 7 ||
	    !goswitch_word(f->v, sp + p->g, &g) || g)
		return 0;
	return depth > sp && depth - sp <= NEAR ? depth : 0;
}

/*
 * The instructions of x86 behind asmcgocall's calls of C, which read what it noted. They tell
 * the place: it moved in Go 1.22, and at the wrong place lie words of earlier frames, which
 * may look right.
 */
static const struct cgocall_code {
	uint8_t size, bytes[5];
	struct cgocall_place place;
} x86_cgocall_code[] = {
	{ 5, { 0x48, 0x8b, 0x7c, 0x24, 48 }, { 48, 40 } }, /* mov 48(%rsp), %rdi: g */
	{ 5, { 0x48, 0x8b, 0x74, 0x24, 40 }, { 48, 40 } }, /* mov 40(%rsp), %rsi: sp on g0 */
	{ 5, { 0x48, 0x8b, 0x7c, 0x24, 8 }, { 8, 0 } }, /* mov 8(%rsp), %rdi */
	{ 4, { 0x48, 0x8b, 0x34, 0x24 }, { 8, 0 } }, /* mov (%rsp), %rsi */
};

/*
 * Returns the size of an instruction that may come first, which loads the offset of g from the
 * thread pointer; 0 if @code does not begin with it.
 */
static size_t tls_offset_size(const uint8_t *code, size_t len)
{
	if (len < 7 || code[0] != 0x48)
		return 0;
	if (code[1] == 0xc7 && code[2] == 0xc1) /* mov $..., %rcx */
		return 7;
	return code[1] == 0x8b && code[2] == 0x0d ? 7 : 0; /* mov ...(%rip), %rcx */
}

/* Returns the place in this release, or NULL if the code does not tell. */
static const struct cgocall_place *cgocall_place(const struct goframe *f)
{
	static const struct cgocall_place arm64 = { 0, 8 };
	size_t before, len, i;
	const uint8_t *code;

	if (f->v->m != &machine_x86)
		return &arm64;
	code = module_code(f->mod, cursor_reg(f->c, REG_PC), &before, &len);
	if (!code)
		return NULL;
	i = tls_offset_size(code, len);
	code += i;
	len -= i;
	for (i = 0; i < ARRAY_SIZE(x86_cgocall_code); i++)
		if (len >= x86_cgocall_code[i].size &&
		    !memcmp(code, x86_cgocall_code[i].bytes, x86_cgocall_code[i].size))
			return &x86_cgocall_code[i].place;
	return NULL;
}

/*
 * Returns the sp that asmcgocall had before it went to g0, or 0. In its frame on g0 it notes the
 * goroutine that it came from, and how far below the end of the goroutine's stack sp was. If it
 * was on g0 already, it notes 0 and sp itself.
 */
static uint64_t cgocall_sp(const struct goframe *f, const struct gothread *t)
{
	const struct cgocall_place *place = cgocall_place(f);
	uint64_t sp;

	if (!place)
		return 0;
	sp = cgocall_goroutine(f, t, place);
	return sp ? sp : cgocall_on_g0(f, place);
}

static int step_asmcgocall(const struct goframe *f, const struct gothread *t)
{
	uint64_t sp;

	if (on_goroutine(t, frame_sp(f)))
		return GOSWITCH_ORDINARY;
	sp = cgocall_sp(f, t);
	if (!sp)
		sp = saved_sp(f->v, t);
	if (!sp && !t->m) /* a goroutine without a known thread is on its own stack */
		return GOSWITCH_ORDINARY;
	return sp ? leave_at(f, sp) : -SHSTK_END_BAD_STACK;
}

/*
 * Tells whether @pc is in runtime.systemstack_switch. That function never runs: the runtime
 * writes its address as if the code that left the goroutine's stack had called it. So it is
 * not a return address, and the instruction in front of it means nothing.
 */
static bool is_switch_mark(const struct view *v, uint64_t pc)
{
	const struct module *mod = v->find(v->arg, pc);
	struct gofunc f;
	const char *name;

	if (!mod || !mod->go.nfunc || !shstk_gopclntab_find(&mod->go, pc - mod->bias, &f))
		return false;
	name = shstk_gopclntab_name(&mod->go, &f);
	return name && !strcmp(name, "runtime.systemstack_switch");
}

/* Steps out of cgocallback on the goroutine's own stack, and leaves out the frames on g0. */
static int step_callback_on_goroutine(const struct goframe *f)
{
	int err = leave_at(f, frame_sp(f));

	if (!err && is_switch_mark(f->v, cursor_reg(f->c, REG_PC))) {
		f->c->exact = true;
		f->c->mark = SHSTK_MARK_PC;
	}
	return err;
}

/*
 * Steps out of cgocallback, on a goroutine that C called. Its caller lies on g0, at the sp that
 * is noted for g0. With nested callbacks, the frame of each callback holds the sp of the callback
 * before it. Without the thread, which waits for the goroutine, only the goroutine's own frames
 * are known.
 */
static int step_cgocallback(const struct goframe *f, const struct gothread *t)
{
	uint64_t place = f->v->m == &machine_x86 ? 0 : 16, sp = f->c->go_g0_sp, last = sp, next;
	int err;

	if (t->m && t->doubt)
		return -SHSTK_END_BAD_STACK;
	if (t->m && !on_goroutine(t, frame_sp(f)))
		return GOSWITCH_ORDINARY; /* the function has not left g0 yet */
	if (!t->m || (!sp && !goswitch_word(f->v, t->g0 + GO_G_SCHED + GO_SCHED_SP, &sp)) || !sp ||
	    sp < last || !goswitch_word(f->v, sp + place, &next) || next <= sp)
		return step_callback_on_goroutine(f);
	err = leave_at(f, sp);
	if (!err)
		f->c->go_g0_sp = next;
	return err;
}

/*
 * Returns the offset in m (of m.vdsoPC) where a function that calls the vdso notes its own return
 * address on arm64, or 0 if it notes nothing. Its code tells the offset.
 */
static uint64_t vdso_place(const struct goframe *f)
{
	const uint32_t str_x30 = 0xf900001e, any_place = 0xffc0001f;
	const unsigned int insns = 32; /* the store is among the first instructions */
	struct gofunc func;
	size_t avail;
	uint64_t at;

	if (f->v->m != &machine_arm64 || !shstk_gopclntab_find(&f->mod->go, f->vaddr, &func))
		return 0;
	for (at = func.entry; at < f->vaddr && at - func.entry < 4 * insns; at += 4) {
		const uint8_t *code = elf_image_at(&f->mod->img, at, &avail);
		uint32_t v;

		if (!code || avail < 4)
			return 0;
		memcpy(&v, code, 4);
		if ((v & any_place) == str_x30 && (v >> 5 & 31) != f->v->m->sp)
			return (v >> 10 & 0xfff) * 8;
	}
	return 0;
}

/*
 * Returns the sp of the frame that called the vdso on arm64, or 0 if it noted nothing. The function
 * notes an sp for the runtime's own profiler: the sp of its caller, or before Go 1.21 its own. It
 * also notes its return address, which lies at its own sp.
 */
static uint64_t noted_sp(const struct goframe *f, const struct gothread *t)
{
	uint64_t place = t->m ? vdso_place(f) : 0, sp, pc, found;
	int64_t size = rule_cfa_off(gorule_plain(&f->mod->go, f->vaddr));
	int i;

	if (place < 8 || !goswitch_word(f->v, t->m + place, &pc) || !pc ||
	    !goswitch_word(f->v, t->m + place - 8, &sp))
		return 0;
	for (i = 0; i < 2; i++, sp -= size)
		if (goswitch_word(f->v, sp, &found) && found == pc)
			return sp;
	return 0;
}

/* Tells whether the noted caller of the frame really calls the frame's function. */
static bool is_noted(const struct goframe *f, const struct gothread *t)
{
	uint64_t sp = noted_sp(f, t), pc;
	struct gofunc func;

	return sp && goswitch_word(f->v, sp, &pc) &&
	       shstk_gopclntab_find(&f->mod->go, f->vaddr, &func) &&
	       call_target(f->v, pc) == func.entry + f->mod->bias;
}

/* Steps out of a function that calls the vdso on g0: its sp is in a register that C preserves. */
static int step_vdso_call(const struct goframe *f, const struct gothread *t)
{
	bool x86 = f->v->m == &machine_x86;
	unsigned int reg = !x86 ? ARM64_R20 : f->mod->go.form == GO_1_2 ? X86_RBP : X86_R12;
	uint64_t sp = frame_sp(f), kept = cursor_reg(f->c, reg);

	if (!cursor_knows(f->c, reg) && !f->v->full)
		return -SHSTK_END_NO_REGISTER;
	/* The unwind information of the arm64 vdso does not tell which registers it saves. */
	if (!cursor_knows(f->c, reg))
		kept = noted_sp(f, t);
	if (!kept || kept & 7 || kept == sp)
		return GOSWITCH_ORDINARY;
	if ((on_goroutine(t, kept) && !on_goroutine(t, sp)) || (kept > sp && kept - sp <= NEAR))
		return leave_at(f, kept);
	return GOSWITCH_ORDINARY;
}

/*
 * Steps out of a function that no instruction called: a signal handler let the code that it
 * interrupted continue here. On arm64 the handler saved the link register of that code in 16
 * bytes of the stack.
 */
static int step_injected(const struct goframe *f, const struct gothread *t)
{
	const struct machine *m = f->v->m;
	struct cursor *c = f->c;
	uint64_t sp, link;
	int err = leave_at(f, frame_sp(f));

	(void)t;
	if (err)
		return err;
	sp = cursor_reg(c, m->sp);
	if (m->ra_in_reg) {
		err = cursor_read(f->v, sp, &link);
		if (err)
			return err;
		cursor_set(&c->regs, m->ra, link);
		cursor_set(&c->regs, m->sp, sp + 16);
	}
	c->exact = true;
	c->innermost = true;
	c->mark = SHSTK_MARK_PC;
	return 0;
}

int goswitch_step(const struct view *v, struct cursor *c, const struct module *mod)
{
	static int (*const steps[])(const struct goframe *f, const struct gothread *t) = {
		[GO_SYSTEMSTACK] = step_systemstack,
		[GO_MCALL] = step_mcall,
		[GO_MORESTACK] = step_morestack,
		[GO_NOCTXT] = leave_to_asker,
		[GO_GOGO] = step_gogo,
		[GO_ASMCGOCALL] = step_asmcgocall,
		[GO_CGOCALLBACK] = step_cgocallback,
		[GO_VDSO_CALL] = step_vdso_call,
		[GO_INJECTED] = step_injected,
	};
	uint64_t pc = cursor_reg(c, REG_PC);
	struct goframe f = { .v = v, .c = c, .mod = mod, .vaddr = pc - mod->bias - !c->exact };
	struct gothread t = { .m = 0 };
	struct gofunc func;
	enum go_role role;

	if (!shstk_gopclntab_find(&mod->go, f.vaddr, &func))
		return GOSWITCH_ORDINARY;
	role = gorule_role(&mod->go, &func);
	if (role >= ARRAY_SIZE(steps) || !steps[role])
		return GOSWITCH_ORDINARY;
	/* Some steps work without the thread: what they need is on the stack or in registers. */
	if (role != GO_INJECTED && !goswitch_thread(v, c, &t)) {
		t.m = 0;
		if (role != GO_ASMCGOCALL && role != GO_VDSO_CALL && role != GO_CGOCALLBACK)
			return GOSWITCH_ORDINARY;
	}
	return steps[role](&f, &t);
}

void goswitch_confirm(const struct view *v, struct cursor *c)
{
	uint64_t pc = cursor_reg(c, REG_PC);
	const struct module *mod = v->find(v->arg, pc - !c->exact);
	struct goframe f = { .v = v, .c = c, .mod = mod };
	struct gothread t;
	struct gofunc func;

	if (!mod || !mod->go.nfunc)
		return;
	f.vaddr = pc - mod->bias - !c->exact;
	if (!shstk_gopclntab_find(&mod->go, f.vaddr, &func) ||
	    gorule_role(&mod->go, &func) != GO_VDSO_CALL || !goswitch_thread(v, c, &t) ||
	    !is_noted(&f, &t))
		return;
	c->mark &= ~SHSTK_MARK_GUESS;
	c->guessed = false;
}
