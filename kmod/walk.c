// SPDX-License-Identifier: GPL-2.0-only
/*
 * walk.c - user callchains by unwind rules, in any context.
 *
 * From the program counter to the mapping (the maple tree under RCU), from its inode to
 * the table, from the table to the rule, by which the caller's pc, sp and fp are found in
 * the stack. Nothing sleeps, locks or faults in: what is not present ends the walk.
 *
 * Three things make it cheap. The stack is read in one window of user access: addresses
 * are clamped instead of checked. Each CPU remembers rules by the number of their table
 * and the offset in it, which nothing but the table can make untrue; and the numbers are
 * never used again. And each CPU remembers the mappings of some address spaces, until
 * these, or any table, change.
 *
 * Whatever the stack, the mappings and the tables say, a walk makes no more than WALK_MAX
 * steps, and reads no memory but the user's.
 *
 * This is the loop, and what it remembers. walk_mapping.h, and walk_special.h with the kinds
 * of rules of each architecture, are called out of line, but compiled with it: what the
 * compiler knows of them saves 12 instructions a walk, on arm64 28 and one a frame.
 */
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "walk_mapping.h"
#include "walk_parts.h"
#include "walk_special.h"

#define CACHE_BITS 12
#define NR_SPACES 4

/**
 * struct memory - what a CPU remembers
 * @busy: a walk is using it; one that interrupts that does without.
 * @space: by mm.
 * @rule: by hash of the key.
 */
struct memory {
	int busy;
	struct space space[NR_SPACES];
	struct packed_rule rule[1 << CACHE_BITS];
};

/* There from the first table on. */
static DEFINE_PER_CPU(struct memory *, memories);
static bool remembers;

/* --- mappings that are remembered --- */

/*
 * The mappings that were remembered of this mm, if nothing changed since. The stamp is
 * read before they are looked up again: a change that comes between is seen next time.
 */
static struct space *find_space(struct memory *memory, const struct mm_struct *mm,
				unsigned long generation)
{
	struct space *s = &memory->space[((u64)mm >> 8 ^ (u64)mm >> 12) % NR_SPACES];
	unsigned int seq = ushstk_mm_seq(mm);
	u64 id = walk_arch_mm_id(mm);

	/* The stamp comes before any look-up. */
	smp_rmb();
	if (likely(s->id == id && s->seq == seq && s->generation == generation))
		return s;
	s->id = id;
	s->seq = seq;
	s->generation = generation;
	s->nr = 0;
	return s;
}

/* --- rules --- */

/* Only what the table is about is remembered under its number. */
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

/* --- the loop --- */

#define window_open() user_access_begin((const void __user *)PAGE_SIZE, sizeof(u64))

/**
 * struct pass - the frame that the loop has come to, and what it needs all along
 * @pc: as in struct frame.
 * @sp: likewise.
 * @fp: likewise.
 * @other: likewise.
 * @at: an address in the code: @pc, or, if that is a return address, the one before.
 * @m: a mapping, of @at once that was found.
 * @rule: that of @at, likewise.
 * @next: room for the next entry.
 * @end: of the room for entries.
 * @limit: of addresses.
 * @rules: see struct walk.
 * @mask: likewise.
 *
 * What it costs is counted (rules_cost.c): all that takes one is inlined, so that its
 * members are registers.
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

/* To frame @f of @w. What is not there yet looks like a mapping without an address. */
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

/* The frame is the trace's next entry. */
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
 * No code is there. A return address that leads there is none; a program counter does if a
 * signal came behind a wild jump, but not to the kernel's addresses, which a forged signal
 * frame may hold.
 */
static __always_inline int pass_no_code(struct pass *p, const struct walk *w)
{
	if (p->at == p->pc && (p->pc < TASK_SIZE_MAX || p->next == w->dst))
		return WALK_NO_TABLE;
	p->next--;
	return WALK_NO_CODE;
}

/*
 * The rule of the frame's code, in @p->rule. The window is open. GO_ON: it still is, else it
 * is closed.
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

/* The frame's CFA by that rule, as an address that may be read. */
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
	/* On arm64 a function may have no frame: the innermost. */
	if (unlikely(*cfa <= p->sp) && (!WALK_LINK_REGISTER || *cfa < p->sp || p->at != p->pc))
		return WALK_BAD_CFA;
	*cfa = walk_arch_clamp(*cfa, p->limit);
	return GO_ON;
}

/* Leave the frame, whose CFA that is: to its caller's. The window is open. */
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

/* Which of the words that pass_frame() reads is not there. */
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
 * As many frames as the loop can pass. Inside the window nothing is called.
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
		/* Joined with the others it would cost each frame three instructions. */
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

/* A frame that it cannot pass. @f: room for it. Return: see step_special(). */
static __always_inline int pass_special(struct pass *p, struct walk *w, struct frame *f,
					const bool careful)
{
	int ret, entry;

	*f = (struct frame){ p->pc, p->sp, p->fp, p->other };
	w->exact = p->at == p->pc;
	if (p->rule->cfa & PACKED_SPECIAL)
		ret = step_special(w, f, p->m, p->rule, careful);
	else
		ret = step_record(w, f, WALK_BAD_CFA);
	if (ret >= 0 || (ret == GO_CAREFULLY && !WALK_LINK_REGISTER))
		return ret;
	/* The step was made. */
	pass_to(p, w, f);
	entry = pass_entry(p);
	w->nr = p->next - w->dst;
	if (entry != GO_ON)
		return entry;
	return careful ? GO_ON : ret;
}

/*
 * From frame @f on. It is compiled twice: @careful for what few walks need: rbx, return
 * probes, an sp that is not known, and to tell where memory is missing.
 *
 * Return: how the walk ends. GO_CAREFULLY: not so far, and this is not @careful; on machines
 * with a link register it has come to @f.
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

static noinline int walk_carefully(struct walk *w, struct frame *f)
{
	return walk_frames(w, f, true);
}

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
	/* On x86 that is for rbx, which was not followed from the beginning. */
	if (!WALK_LINK_REGISTER)
		walk_begin(w, &f);
	return walk_carefully(w, &f);
}

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

/* It interrupted another walk on this CPU, or there is no table that it could remember. */
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
 * Whether a walk that ended so says anything. In a file that has a table, code without a rule, or
 * with one that cannot be said, may still have a frame record; if it has none that is right, the
 * kernel's own walk would follow one that is wrong.
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
	/* As preemption is disabled, this is an RCU section. */
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
		/* Its zeroes come before it: walks follow the pointer. */
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

/* The hooks are out already, or were never in. */
void walk_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		kvfree(per_cpu(memories, cpu));
}
