// SPDX-License-Identifier: GPL-2.0-only
/*
 * walk.c - walks user stacks by unwind rules, in any context.
 *
 * A walk goes from the program counter to the mapping (the maple tree under RCU), from the inode of
 * the mapping to the table, and from the table to the rule. The rule says where the caller's pc, sp
 * and fp are on the stack. Nothing sleeps, locks or faults in pages: a page that is not present
 * ends the walk.
 *
 * Three things make a walk cheap. The stack is read in one window of user access, with addresses
 * clamped instead of checked. Each CPU remembers rules by the number of their table and the offset
 * in it; these stay true because a table does not change and its number is never used again. And
 * each CPU remembers the mappings of some address spaces, until their mappings or any table change.
 *
 * Whatever the stack, the mappings and the tables contain, a walk makes at most WALK_MAX steps and
 * reads only user memory.
 *
 * This file has the loop and the memory of each CPU. walk_mapping.h, and walk_special.h with the
 * rule kinds of each architecture, are called out of line but compiled together with the loop: what
 * the compiler knows of them then saves 12 instructions per walk; on arm64 it saves 28, and one per
 * frame.
 */
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "walk_mapping.h"
#include "walk_shared.h"
#include "walk_special.h"

#define CACHE_BITS 12
#define NR_SPACES 4

/**
 * struct memory - what a CPU remembers between walks
 * @busy: a walk is using the memory; a walk that interrupts that one does without it.
 * @space: address spaces, by a hash of the mm.
 * @rule: rules, by a hash of their key.
 */
struct memory {
	int busy;
	struct space space[NR_SPACES];
	struct packed_rule rule[1 << CACHE_BITS];
};

/* The memory of each CPU. It is allocated before the first table is loaded, and NULL until then. */
static DEFINE_PER_CPU(struct memory *, memories);
static bool remembers;

/* ---- Remembered mappings ---- */

/*
 * Returns the remembered mappings of @mm. They are emptied if something has changed since they were
 * remembered. The stamp is read before mappings are looked up again, so a change that comes in
 * between is noticed next time.
 */
static struct space *find_space(struct memory *memory, const struct mm_struct *mm,
				unsigned long generation)
{
	struct space *s = &memory->space[((u64)mm >> 8 ^ (u64)mm >> 12) % NR_SPACES];
	unsigned int seq = ushstk_mm_seq(mm);
	u64 id = walk_arch_mm_id(mm);

	/* The stamp must be read before any lookup. */
	smp_rmb();
	if (likely(s->id == id && s->seq == seq && s->generation == generation))
		return s;
	s->id = id;
	s->seq = seq;
	s->generation = generation;
	s->nr = 0;
	return s;
}

/* ---- Rules ---- */

/*
 * Looks up the rule of the code at @at and puts it into the cache slot @rule. Only a rule that the
 * table covers gets a key, under which it is found again.
 */
static noinline void look_up_rule(struct walk *w, const struct mapping *m, u64 at,
				  struct packed_rule *rule)
{
	u64 offset = at + m->file_off;

	walk_count(COUNT_RULES_READ);
	if (m->table && ushstk_rules_cover(&m->table->view, offset)) {
		pack_rule(ushstk_rule_at(&m->table->view, offset), rule);
		rule->key = at + m->key_off;
	} else {
		pack_rule(SHSTK_RULE_NONE, rule);
		rule->key = 0;
	}
}

/* ---- The loop ---- */

#define window_open() user_access_begin((const void __user *)PAGE_SIZE, sizeof(u64))

/**
 * struct pass - the frame that the loop has reached, and what the loop needs all the time
 * @pc: program counter or return address, as in struct frame.
 * @sp: stack pointer.
 * @fp: frame pointer register.
 * @other: rbx, or x30 on arm64.
 * @at: an address in the code: @pc itself or, if that is a return address, the byte before it.
 * @m: a mapping; once it was looked up, the mapping of @at.
 * @rule: rule of @at, once it was looked up.
 * @next: where the next entry goes.
 * @end: end of the room for entries.
 * @limit: limit to which addresses are clamped.
 * @rules: remembered rules, as in struct walk.
 * @mask: number of remembered rules - 1.
 *
 * The instructions per walk are counted (rules_cost.c). Every function that takes a struct pass is
 * inlined, so that its members are registers.
 */
struct pass {
	u64 pc, sp, fp, other, at;
	struct mapping *m;
	struct packed_rule *rule;
	u64 *next, *end;
	u64 limit;
	struct packed_rule *rules;
	unsigned int mask;
};

/*
 * Sets @p to the frame @f of @w. If no mapping is remembered yet, @p->m is made a mapping without
 * any address.
 */
static __always_inline void pass_to(struct pass *p, struct walk *w, const struct frame *f)
{
	p->pc = f->pc;
	p->sp = f->sp;
	p->fp = f->fp;
	p->other = f->other;
	p->at = p->pc - !w->exact;
	p->m = &w->space->mapping[0];
	if (!w->space->nr)
		p->m->len = 0;
}

/* Makes the frame the next entry of the trace. Returns GO_ON, or how the walk ends. */
static __always_inline int pass_entry(struct pass *p)
{
	if (unlikely(!p->pc))
		return WALK_ZERO;
	if (unlikely(p->next == p->end))
		return WALK_ROOM;
	*p->next++ = p->pc;
	return GO_ON;
}

/*
 * Ends a walk at @p->at where no code is mapped. A return address that leads there is not one, so
 * its entry is removed. A program counter may lead there if a signal came after a wild jump, and
 * its entry stays; but a kernel address, which a forged signal frame may hold, is removed. Returns
 * how the walk ends.
 */
static __always_inline int pass_no_code(struct pass *p, const struct walk *w)
{
	if (p->at == p->pc && (p->pc < TASK_SIZE_MAX || p->next == w->dst))
		return WALK_NO_TABLE;
	p->next--;
	return WALK_NO_CODE;
}

/*
 * Finds the rule of the frame's code and puts it into @p->rule. The window of user access is open
 * at the start. If the result is GO_ON, it is still open, otherwise it is closed.
 */
static __always_inline int pass_rule(struct pass *p, struct walk *w, const bool careful)
{
	u64 key;

	if (careful && unlikely(w->instance && p->at != p->pc)) {
		user_access_end();
		p->pc = through_trampoline(w, p->pc, p->sp);
		p->at = p->pc - 1;
		p->next[-1] = p->pc;
		if (!window_open())
			return WALK_REFUSED;
	}
	if (unlikely(p->at - p->m->start >= p->m->len)) {
		user_access_end();
		p->m = find_mapping(w, p->at);
		if (!p->m)
			return pass_no_code(p, w);
		if (!window_open())
			return WALK_REFUSED;
	}
	key = p->at + p->m->key_off;
	p->rule = &p->rules[(key ^ key >> CACHE_BITS) & p->mask];
	if (unlikely(p->rule->key != key)) {
		user_access_end();
		look_up_rule(w, p->m, p->at, p->rule);
		if (!window_open())
			return WALK_REFUSED;
	}
	return GO_ON;
}

/*
 * Computes the frame's CFA by the rule, as an address that may be read. Returns GO_ON, GO_SPECIAL,
 * or how the walk ends.
 */
static __always_inline int pass_cfa(const struct pass *p, struct walk *w, const bool careful,
				    u64 *cfa)
{
	u32 packed = p->rule->cfa;

	*cfa = p->sp + packed;
	if (unlikely(packed & PACKED_FLAGS)) {
		if (packed & PACKED_SPECIAL)
			return GO_SPECIAL;
		*cfa = p->fp + (packed & ~PACKED_FLAGS);
		if (careful)
			w->sp_known = true;
	} else if (careful && WALK_LINK_REGISTER && !w->sp_known) {
		return GO_SPECIAL;
	}
	/*
	 * On arm64 a function may have no frame, so the innermost frame's CFA may be equal to sp.
	 */
	if (unlikely(*cfa <= p->sp) && (!WALK_LINK_REGISTER || *cfa < p->sp || p->at != p->pc))
		return WALK_BAD_CFA;
	*cfa = walk_arch_clamp(*cfa, p->limit);
	return GO_ON;
}

/*
 * Goes from the frame with this CFA to the frame of its caller. The window of user access is open.
 * Returns GO_ON, or how the walk ends.
 */
static __always_inline int pass_frame(struct pass *p, u64 cfa, const bool careful)
{
	const struct packed_rule *rule = p->rule;

	if (!WALK_LINK_REGISTER) {
		unsafe_get_user(p->pc, (u64 __user *)(cfa - 8), fault);
		if (careful && rule->saved)
			unsafe_get_user(p->other, (u64 __user *)at_words(cfa, rule->saved), fault);
	} else if (likely(rule->saved)) {
		unsafe_get_user(p->pc, (u64 __user *)at_words(cfa, rule->saved), fault);
		p->pc = walk_arch_strip(p->pc);
	} else if (p->at == p->pc) {
		p->pc = walk_arch_strip(p->other);
	} else {
		return WALK_BAD_CFA;
	}
	if (rule->fp)
		unsafe_get_user(p->fp, (u64 __user *)at_words(cfa, rule->fp), fault);
	p->sp = cfa;
	p->at = p->pc - 1;
	return GO_ON;
fault:
	return WALK_NO_MEMORY;
}

/*
 * Finds which of the words that pass_frame() reads is missing, and notes its address in
 * @w->missing.
 */
static noinline void note_missing(struct walk *w, const struct packed_rule *rule, u64 cfa)
{
	u64 word;

	if (!WALK_LINK_REGISTER && !load(w, &word, cfa - 8))
		return;
	if (rule->saved && !load(w, &word, at_words(cfa, rule->saved)))
		return;
	if (rule->fp)
		load(w, &word, at_words(cfa, rule->fp));
}

/*
 * Passes as many frames as the loop can pass. Nothing is called inside the window of user access.
 *
 * Return: GO_SPECIAL, or how the walk ends.
 */
static __always_inline int pass_frames(struct pass *p, struct walk *w, const bool careful)
{
	u64 cfa;
	int ret;

	if (!window_open())
		return WALK_REFUSED;
	do {
		ret = pass_rule(p, w, careful);
		if (ret != GO_ON)
			return ret;
		ret = pass_cfa(p, w, careful, &cfa);
		/*
		 * This check is separate, because one combined check would cost each frame three
		 * instructions.
		 */
		if (ret == GO_SPECIAL) {
			user_access_end();
			return ret;
		}
		if (ret == GO_ON)
			ret = pass_frame(p, cfa, careful);
		if (ret == GO_ON)
			ret = pass_entry(p);
	} while (likely(ret == GO_ON));
	user_access_end();
	if (careful && ret == WALK_NO_MEMORY)
		note_missing(w, p->rule, cfa);
	return ret;
}

/*
 * Returns whether the frame is in the vdso, which has no table. Unlike code in a file without a
 * table, it is not left by a frame record: on arm64 signal handlers return there, and the frame
 * record that the kernel makes for them holds the x30 of the interrupted function, so the function
 * itself, or its caller, would be missing.
 */
static __always_inline bool in_bare_vdso(const struct pass *p)
{
	return p->m->key == rules_vdso_key && !p->m->table;
}

/* Ends a walk in such a frame. */
static noinline int end_in_vdso(u64 offset)
{
	rules_cut(rules_vdso_key, offset, RULES_CUT_TABLE);
	return WALK_NO_TABLE;
}

/*
 * Passes one frame that the loop cannot pass. @f is room for that frame. Returns GO_ON,
 * GO_CAREFULLY, or how the walk ends.
 */
static __always_inline int pass_special(struct pass *p, struct walk *w, struct frame *f,
					const bool careful)
{
	int ret, entry;

	*f = (struct frame){ p->pc, p->sp, p->fp, p->other };
	w->exact = p->at == p->pc;
	if (unlikely(in_bare_vdso(p)))
		return end_in_vdso(p->at + p->m->file_off);
	if (p->rule->cfa & PACKED_SPECIAL)
		ret = step_special(w, f, p->m, p->rule, careful);
	else
		ret = step_record(w, f, WALK_BAD_CFA);
	if (ret >= 0 || (ret == GO_CAREFULLY && !WALK_LINK_REGISTER))
		return ret;
	/* The step was made, so the loop continues from the new frame. */
	pass_to(p, w, f);
	entry = pass_entry(p);
	w->nr = p->next - w->dst;
	if (entry != GO_ON)
		return entry;
	return careful ? GO_ON : ret;
}

/*
 * Walks from frame @f on. The function is compiled twice. The @careful version handles what few
 * walks need: rbx, return probes, an sp that is not known, and finding out which memory is missing.
 *
 * Return: how the walk ends; or GO_CAREFULLY if it cannot end without @careful. On machines with a
 * link register the walk has then come to frame @f.
 */
static __always_inline int walk_frames(struct walk *w, struct frame *f, const bool careful)
{
	struct pass p = {
		.next = w->dst + w->nr,
		.end = w->dst + w->max,
		.limit = walk_arch_limit(),
		.rules = w->rules,
		.mask = w->mask,
	};
	int ret;

	pass_to(&p, w, f);
	do {
		ret = pass_frames(&p, w, careful);
		w->nr = p.next - w->dst;
		if (ret == GO_SPECIAL)
			ret = pass_special(&p, w, f, careful);
	} while (ret == GO_ON);
	return ret;
}

/* Walks with @careful from frame @f on. Returns how the walk ends. */
static noinline int walk_carefully(struct walk *w, struct frame *f)
{
	return walk_frames(w, f, true);
}

/* Sets @f to the innermost frame, and resets @w. */
static __always_inline void walk_begin(struct walk *w, struct frame *f)
{
	walk_arch_start(f, w->regs);
	if (unlikely(ushstk_own_utask()))
		f->pc = ushstk_unstepped(f->pc);
	w->nr = 0;
	w->signals = 0;
	w->exact = true;
	w->sp_known = true;
}

/* Makes the whole walk, carefully where that is needed. Returns how it ends. */
static __always_inline int walk_all(struct walk *w)
{
	struct frame f;
	int ret;

	walk_begin(w, &f);
	if (unlikely(w->instance || w->missing))
		return walk_carefully(w, &f);
	ret = walk_frames(w, &f, false);
	if (likely(ret != GO_CAREFULLY))
		return ret;
	/* On x86 the reason is rbx, which was not followed, so the walk starts again. */
	if (!WALK_LINK_REGISTER)
		walk_begin(w, &f);
	return walk_carefully(w, &f);
}

/* Makes the walk with the memory of this CPU. Returns how it ends. */
static __always_inline int walk_remembering(struct walk *w, struct memory *memory)
{
	int ret;

	WRITE_ONCE(memory->busy, 1);
	barrier();
	w->space = find_space(memory, w->mm, READ_ONCE(rules_generation));
	w->rules = memory->rule;
	w->mask = (1 << CACHE_BITS) - 1;
	ret = walk_all(w);
	barrier();
	WRITE_ONCE(memory->busy, 0);
	return ret;
}

/*
 * Walks without the memory of the CPU. It is called if the walk interrupted another walk on this
 * CPU, or if no table was loaded that the CPU could remember rules of.
 */
static noinline int walk_nested(struct walk *w)
{
	struct space space;
	struct packed_rule rule = {};

	space.nr = 0;
	w->space = &space;
	w->rules = &rule;
	w->mask = 0;
	return walk_all(w);
}

/*
 * Returns whether a walk that ended in this way gives a usable chain. A chain with an entry is
 * always usable. Without an entry, code in a file that has a table, with no rule or with a rule
 * that no kind can express, may still have a frame record. If it has no correct one, the kernel's
 * own walk would follow a wrong one, so the empty chain is usable, too.
 */
static __always_inline bool walk_tells(const struct walk *w, int end)
{
	const unsigned int tells = BIT(WALK_WHOLE) | BIT(WALK_ZERO) | BIT(WALK_ROOM) |
				   BIT(WALK_NO_CODE) | BIT(WALK_NO_RULE) | BIT(WALK_NO_KIND);

	return likely(w->nr) || tells >> end & 1;
}

int walk_user(const struct pt_regs *regs, u64 *dst, unsigned int max, u64 *missing)
{
	struct memory *mem = READ_ONCE(*raw_cpu_ptr(&memories));
	const struct uprobe_task *utask = ushstk_own_utask();
	struct walk w = {
		.regs = regs,
		.mm = current->mm,
		.dst = dst,
		.max = min(max, WALK_MAX),
		.instance = unlikely(utask) ? ushstk_returns(utask) : NULL,
		.missing = missing,
	};
	int ret;

	if (unlikely(!walk_arch_ok(regs))) {
		walk_count(WALK_REFUSED);
		return -1;
	}
	/* This is an RCU section because preemption is disabled. */
	pagefault_disable();
	if (likely(mem && !READ_ONCE(mem->busy)))
		ret = walk_remembering(&w, mem);
	else
		ret = walk_nested(&w);
	pagefault_enable();
	if (unlikely(missing && *missing))
		return w.nr;
	if (unlikely(!walk_tells(&w, ret))) {
		walk_count(COUNT_FIRST_UNKNOWN);
		return -1;
	}
	walk_count(ret);
	return w.nr;
}

int walk_remember(void)
{
	int cpu;

	if (remembers)
		return 0;
	for_each_possible_cpu(cpu) {
		struct memory *m;

		if (per_cpu(memories, cpu))
			continue;
		m = kvzalloc_node(sizeof(*m), GFP_KERNEL, cpu_to_node(cpu));
		if (!m)
			return -ENOMEM;
		/*
		 * The memory must be zeroed before the pointer is visible, because walks follow the
		 * pointer.
		 */
		smp_store_release(per_cpu_ptr(&memories, cpu), m);
	}
	remembers = true;
	return 0;
}

size_t walk_memory(void)
{
	size_t sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		if (READ_ONCE(per_cpu(memories, cpu)))
			sum += sizeof(struct memory);
	return sum;
}

/* Frees the memory of all CPUs. The hooks are removed already, or were never installed. */
void walk_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		kvfree(per_cpu(memories, cpu));
}
