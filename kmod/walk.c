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
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kobject.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/uaccess.h>
#include <linux/uprobes.h>
#include <linux/vmalloc.h>

#include "arch.h"
#include "rules.h"
#include "walk.h"

/**
 * struct frame - what is known of a frame
 * @pc: program counter, or return address.
 * @sp: stack pointer.
 * @fp: frame pointer register, rbp or x29.
 * @other: rbx, or x30 (link register).
 */
struct frame {
	u64 pc, sp, fp, other;
};

#ifdef CONFIG_X86
#include "walk_x86.h"
#else
#include "walk_arm64.h"
#endif

#define CACHE_BITS 12
#define NR_MAPPINGS 16
#define NR_SPACES 4
#define MAX_SIGNALS 8
#define MAX_RECORD 0x100000 /* bytes from sp to a frame record */

/**
 * struct mapping - executable addresses of one file, or of none
 * @start: first address.
 * @len: bytes.
 * @key_off: to be added to an address: the key of its rule; see struct step.
 * @file_off: to be added to an address: the offset in the file.
 * @table: NULL if no table says anything here.
 * @file: it is of a file, or the vdso.
 * @key: that file's, to be told by.
 */
struct mapping {
	u64 start, len;
	u64 key_off;
	u64 file_off;
	const struct rules_table *table;
	bool file;
	const void *key;
};

/**
 * struct space - mappings of an address space, and until when they hold
 * @id: of the mm, 0 for none.
 * @seq: its mm_lock_seq, which each change of a mapping changes.
 * @generation: rules_generation.
 * @nr: mappings that were stored; the last NR_MAPPINGS are there.
 * @mapping: these.
 */
struct space {
	u64 id;
	unsigned int seq;
	unsigned long generation;
	unsigned int nr;
	struct mapping mapping[NR_MAPPINGS];
};

/**
 * struct step - a rule, unpacked
 * @key: number of the table << 32 | offset in it; 0: none.
 * @cfa: bytes from sp, or, with STEP_FP, from fp to the CFA. With STEP_SPECIAL: its
 *	kind, register, and CFA in words, see pack_special().
 * @fp: words from the CFA to where the caller's fp is, so less than 0; 0 if it is
 *	unchanged.
 * @saved: the same of what the rule's saved is.
 */
struct step {
	u64 key;
	u32 cfa;
	s16 fp, saved;
};

#define STEP_FP 1u
#define STEP_SPECIAL 2u
#define STEP_FLAGS 7u

/**
 * struct memory - what a CPU remembers
 * @busy: a walk is using it; one that interrupts that does without.
 * @space: by mm.
 * @step: by hash of the key.
 */
struct memory {
	int busy;
	struct space space[NR_SPACES];
	struct step step[1 << CACHE_BITS];
};

static DEFINE_PER_CPU(struct memory *, memories);

/* What else is counted. */
enum {
	STEP_BY_RECORD = WALK_ENDS, /* frame record, no rule */
	STEP_SIGNAL,
	STEP_URETPROBE,
	FIRST_UNKNOWN, /* -1: served by somebody else */
	MAPPINGS_READ,
	RULES_READ,
	NR_COUNTS,
};

struct counts {
	u64 count[NR_COUNTS];
};

static DEFINE_PER_CPU(struct counts, counts);

/* Preemption is disabled; another walk on this CPU may come between. */
static __always_inline void count(unsigned int what)
{
	ushstk_arch_count(counts.count[what]);
}

/**
 * struct walk - a walk
 * @regs: where it began.
 * @mm: current's.
 * @space: mappings.
 * @step: remembered rules, @mask + 1 of them.
 * @mask: see @step.
 * @dst: room for entries.
 * @max: their number.
 * @nr: entries that there are.
 * @signals: signal frames passed.
 * @exact: the frame's pc is a program counter, not a return address.
 * @sp_known: false if sp is a lower bound only: behind a frame record of arm64.
 * @instance: pending return probes of frames not yet passed.
 */
struct walk {
	const struct pt_regs *regs;
	struct mm_struct *mm;
	struct space *space;
	struct step *step;
	unsigned int mask;
	u64 *dst;
	unsigned int max;
	unsigned int nr;
	unsigned int signals;
	bool exact;
	bool sp_known;
	const struct return_instance *instance;
};

/* --- mappings --- */

/*
 * VMAs and files are freed under RCU, or may become others' meanwhile: what was read of
 * one counts only if it is the same when read again. A file may be freed at once; its
 * inode is only compared.
 */
static bool read_mapping(struct mm_struct *mm, u64 addr, struct mapping *m, const void **key)
{
	struct vm_area_struct *vma;
	unsigned long start, end, pgoff;
	struct file *file;

	*key = NULL;
	vma = mtree_load(&mm->mm_mt, addr);
	if (!vma)
		return false;
	start = READ_ONCE(vma->vm_start);
	end = READ_ONCE(vma->vm_end);
	pgoff = READ_ONCE(vma->vm_pgoff);
	file = READ_ONCE(vma->vm_file);
	if (file && get_kernel_nofault(*key, (const void **)&file->f_inode))
		return false;
	if (!(READ_ONCE(vma->vm_flags) & VM_EXEC) || addr < start || addr >= end)
		return false;
	/* All reads above come before these. */
	smp_rmb();
	if (READ_ONCE(vma->vm_mm) != mm || READ_ONCE(vma->vm_start) != start ||
	    READ_ONCE(vma->vm_end) < end || READ_ONCE(vma->vm_file) != file ||
	    READ_ONCE(vma->vm_pgoff) != pgoff)
		return false;
	m->start = start;
	m->len = end - start;
	m->file_off = ((u64)pgoff << PAGE_SHIFT) - start;
	m->file = file;
	if (!file && start == (unsigned long)mm->context.vdso) {
		*key = rules_vdso_key;
		m->file_off = -(u64)start;
		m->file = true;
	}
	return true;
}

/*
 * Only that part of the mapping, around @addr, which the table is about, or is not: so that
 * no key runs into the numbers of other tables. All is compared as offsets in the file, none
 * of which is negative; as an address the file's beginning may be.
 */
static void cut_mapping(struct mapping *m, u64 addr)
{
	const struct ushstk_rules_view *v = &m->table->view;
	u64 begin = v->base, end = begin + ((u64)v->nr_pages << SHSTK_RULES_PAGE_SHIFT);
	u64 first = m->start + m->file_off, past = first + m->len;
	u64 at = addr + m->file_off;

	if (at < begin) {
		m->table = NULL;
		past = min(past, begin);
	} else if (at >= end) {
		m->table = NULL;
		first = max(first, end);
	} else {
		m->key_off = ((u64)m->table->id << 32) + m->file_off - begin;
		first = max(first, begin);
		past = min(past, end);
	}
	m->start = first - m->file_off;
	m->len = past - first;
}

/* Where nothing is known, keys are below those of all tables, and never stored. */
static void no_table(struct mapping *m)
{
	m->table = NULL;
	m->key_off = 1 - m->start;
	m->len = min(m->len, (u64)U32_MAX - 1);
}

/* Return: the mapping at @addr, NULL if that is not executable. */
static noinline struct mapping *look_up_mapping(struct walk *w, u64 addr)
{
	struct space *space = w->space;
	struct mapping *m, found;
	const void *key;

	count(MAPPINGS_READ);
	if (!read_mapping(w->mm, addr, &found, &key))
		return NULL;
	found.key = key;
	found.table = key ? rules_find(key) : NULL;
	if (key && !found.table && key != rules_vdso_key)
		rules_miss(key, addr);
	if (found.table)
		cut_mapping(&found, addr);
	if (!found.table) {
		/* An address further than the keys reach: its own piece. */
		if (addr - found.start >= U32_MAX - 1) {
			found.len -= addr - found.start;
			found.start = addr;
		}
		no_table(&found);
	}
	m = &space->mapping[space->nr++ % NR_MAPPINGS];
	*m = found;
	return m;
}

static __always_inline struct mapping *find_mapping(struct walk *w, u64 addr)
{
	struct space *space = w->space;
	unsigned int i, n = min(space->nr, NR_MAPPINGS);

	for (i = 0; i < n; i++)
		if (addr - space->mapping[i].start < space->mapping[i].len)
			return &space->mapping[i];
	return look_up_mapping(w, addr);
}

/*
 * The mappings that were remembered of this mm, if nothing changed since. The stamp is
 * read before they are looked up again: a change that comes between is seen next time.
 */
static struct space *find_space(struct memory *memory, const struct mm_struct *mm,
				unsigned long generation)
{
	struct space *s = &memory->space[((u64)mm >> 8 ^ (u64)mm >> 12) % NR_SPACES];
	unsigned int seq = READ_ONCE(mm->mm_lock_seq.sequence);
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

/* What the walk does not do in its loop; in one word as far as it fits. */
static u32 pack_special(u64 rule)
{
	unsigned int kind = ushstk_rule_kind(rule);
	int cfa = ushstk_rule_cfa(rule);

	if (cfa != (s16)cfa)
		kind = SHSTK_RULE_CUT;
	return (u32)cfa << 16 | ushstk_rule_reg(rule) << 8 | kind << 4 | STEP_SPECIAL;
}

static unsigned int step_kind(u32 cfa)
{
	return cfa >> 4 & SHSTK_RULE_KIND_MASK;
}

static void unpack_rule(u64 rule, struct step *e)
{
	unsigned int kind = ushstk_rule_kind(rule);
	unsigned int fp = ushstk_rule_fp(rule), saved = ushstk_rule_saved(rule);

	e->fp = -fp;
	e->saved = -saved;
	if (fp > S16_MAX || saved > S16_MAX)
		e->cfa = pack_special(SHSTK_RULE_CUT);
	else if (kind == SHSTK_RULE_SP)
		e->cfa = ushstk_rule_cfa(rule) * 8;
	else if (kind == SHSTK_RULE_FP)
		e->cfa = ushstk_rule_cfa(rule) * 8 | STEP_FP;
	else
		e->cfa = pack_special(rule);
}

/* Only what the table is about is remembered under its number. */
static noinline void look_up_rule(struct walk *w, const struct mapping *m, u64 at, struct step *e)
{
	u64 offset = at + m->file_off;

	count(RULES_READ);
	if (m->table && ushstk_rules_cover(&m->table->view, offset)) {
		unpack_rule(ushstk_rule_at(&m->table->view, offset), e);
		e->key = at + m->key_off;
	} else {
		unpack_rule(SHSTK_RULE_NONE, e);
		e->key = 0;
	}
}

/* --- frames that the loop does not pass by itself --- */

/* One addressing mode of the processor. */
static __always_inline u64 at_words(u64 addr, s64 words)
{
	return addr + 8 * words;
}

static __always_inline bool load(u64 *ret, u64 addr)
{
	return addr < TASK_SIZE_MAX - PAGE_SIZE &&
	       !__get_user(*ret, (u64 __user *)(unsigned long)addr);
}

/* What happens next: less than 0, go on; else enum walk_end. */
#define GO_ON (-1)
#define GO_CAREFULLY (-2)

static bool behind_call(u64 pc)
{
	u8 code[WALK_CALL_BYTES];
	u64 at = pc - WALK_CALL_BYTES;
	int i;

	for (i = 0; i < WALK_CALL_BYTES; i++)
		if (at >= TASK_SIZE_MAX - PAGE_SIZE ||
		    __get_user(code[i], (u8 __user *)(unsigned long)at + i))
			return false;
	return walk_arch_after_call(code);
}

/*
 * Code that nothing describes: the frame record at fp, if it lies in the stack a little
 * above and its return address is behind a call in executable memory.
 */
static int step_record(struct walk *w, struct frame *f, int why)
{
	u64 fp, pc;

	if (f->fp < f->sp || f->fp - f->sp > MAX_RECORD || f->fp & 7 || !load(&fp, f->fp) ||
	    !load(&pc, f->fp + 8))
		return why;
	pc = walk_arch_strip(pc);
	if (!behind_call(pc) || !find_mapping(w, pc - 1))
		return why;
	count(STEP_BY_RECORD);
	f->sp = f->fp + 16;
	f->fp = fp;
	f->pc = pc;
	w->exact = false;
	if (!WALK_LINK_REGISTER || !w->sp_known)
		return GO_ON;
	/* The record is at the frame's lower end: the rest of it is not known. */
	w->sp_known = false;
	return GO_CAREFULLY;
}

static int step_signal(struct walk *w, struct frame *f)
{
	u64 sp = f->sp;

	if (!w->sp_known || w->signals == MAX_SIGNALS)
		return WALK_BAD_CFA;
	if (!load(&f->pc, sp + WALK_CONTEXT_PC) || !load(&f->fp, sp + WALK_CONTEXT_FP) ||
	    !load(&f->other, sp + WALK_CONTEXT_OTHER) || !load(&f->sp, sp + WALK_CONTEXT_SP))
		return WALK_NO_MEMORY;
	count(STEP_SIGNAL);
	w->signals++;
	w->exact = true;
	return GO_ON;
}

static unsigned int step_reg(u32 cfa)
{
	return cfa >> 8 & SHSTK_RULE_REG_MASK;
}

static s64 step_cfa(u32 cfa)
{
	return (s64)((s32)cfa >> 16) * 8;
}

#ifdef CONFIG_X86
/* The CFA is known; the rest is as in the loop. */
static int step_to(struct walk *w, struct frame *f, const struct step *e, u64 cfa)
{
	if (cfa <= f->sp)
		return WALK_BAD_CFA;
	if (!load(&f->pc, cfa - 8) || (e->fp && !load(&f->fp, at_words(cfa, e->fp))) ||
	    (e->saved && !load(&f->other, at_words(cfa, e->saved))))
		return WALK_NO_MEMORY;
	f->sp = cfa;
	w->exact = false;
	return GO_ON;
}

static int step_load(struct walk *w, struct frame *f, const struct step *e)
{
	u64 cfa, fp = f->fp;
	int ret;

	if (!load(&cfa, fp + step_cfa(e->cfa)))
		return WALK_NO_MEMORY;
	ret = step_to(w, f, e, cfa);
	if (ret == GO_ON && !load(&f->fp, fp))
		return WALK_NO_MEMORY;
	return ret;
}

static int step_stack(struct walk *w, struct frame *f, const struct step *e)
{
	u64 cfa;

	if (!load(&cfa, f->sp + step_cfa(e->cfa)))
		return WALK_NO_MEMORY;
	return step_to(w, f, e, at_words(cfa, step_reg(e->cfa)));
}

/* Only the interrupted frame's registers are all known. */
static int step_index(struct walk *w, struct frame *f, const struct step *e)
{
	u64 cfa;

	if (w->nr)
		return WALK_NO_KIND;
	if (!load(&cfa, at_words(f->sp + step_cfa(e->cfa),
				 walk_arch_register(w->regs, step_reg(e->cfa)))))
		return WALK_NO_MEMORY;
	return step_to(w, f, e, cfa + 8);
}

static int step_register(struct walk *w, struct frame *f, const struct step *e, bool careful)
{
	unsigned int reg = step_reg(e->cfa);
	u64 value;

	/* Only the interrupted frame's registers are all known. */
	if (w->nr && reg != WALK_DWARF_RBX)
		return WALK_NO_KIND;
	if (w->nr && !careful)
		return GO_CAREFULLY;
	value = w->nr ? f->other : walk_arch_register(w->regs, reg);
	return step_to(w, f, e, value + step_cfa(e->cfa));
}

/* A thread that has just begun has no caller; the one that made it has. */
static int step_clone(struct walk *w, struct frame *f, const struct step *e)
{
	if (w->nr)
		return WALK_NO_KIND;
	return walk_arch_register(w->regs, WALK_DWARF_RAX) ? step_to(w, f, e, f->sp + 8) :
							     WALK_WHOLE;
}

static int step_arch(struct walk *w, struct frame *f, const struct step *e, bool careful)
{
	unsigned int in_stub = (f->pc - !w->exact) & 15;

	switch (step_kind(e->cfa)) {
	case SHSTK_RULE_REG:
		return step_register(w, f, e, careful);
	case SHSTK_RULE_LOAD:
		return step_load(w, f, e);
	case SHSTK_RULE_STACK:
		return step_stack(w, f, e);
	case SHSTK_RULE_INDEX:
		return step_index(w, f, e);
	case SHSTK_RULE_CLONE:
		return step_clone(w, f, e);
	case SHSTK_RULE_PLT:
		return step_to(w, f, e, f->sp + (in_stub >= step_reg(e->cfa) ? 16 : 8));
	}
	return WALK_NO_KIND;
}
#else
/*
 * The return address is kept in a register while something is called that leaves it
 * alone: glibc's setjmp(). Its value is known if that is the interrupted frame. In the
 * frame that called the interrupted one it is trusted to be the same; what is called so
 * does leave it alone, or the function would not return either.
 */
static int step_return(struct walk *w, struct frame *f, const struct step *e)
{
	u64 cfa = f->sp + step_cfa(e->cfa);

	if (w->nr > 1 || w->signals)
		return WALK_NO_KIND;
	if (!w->sp_known)
		return WALK_BAD_CFA;
	if (e->fp && !load(&f->fp, at_words(cfa, e->fp)))
		return WALK_NO_MEMORY;
	f->pc = walk_arch_strip(walk_arch_register(w->regs, step_reg(e->cfa)));
	f->sp = cfa;
	w->exact = false;
	return GO_ON;
}

static int step_arch(struct walk *w, struct frame *f, const struct step *e, bool careful)
{
	return step_kind(e->cfa) == SHSTK_RULE_RETURN ? step_return(w, f, e) : WALK_NO_KIND;
}
#endif

static __always_inline int step_by_kind(struct walk *w, struct frame *f, const struct step *e,
					bool table, bool careful)
{
	switch (step_kind(e->cfa)) {
	case SHSTK_RULE_END:
		return WALK_WHOLE;
	case SHSTK_RULE_SIGNAL:
		return step_signal(w, f);
	case SHSTK_RULE_NONE:
		return step_record(w, f, table ? WALK_NO_RULE : WALK_NO_TABLE);
	}
	return step_arch(w, f, e, careful);
}

/* Return: GO_ON, GO_CAREFULLY, or how the walk ends. */
static noinline int step_special(struct walk *w, struct frame *f, const struct mapping *m,
				 const struct step *e, bool careful)
{
	/* step_by_kind() may overwrite *m: read it first. */
	u64 offset = f->pc - !w->exact + m->file_off;
	const void *key = m->key;
	int ret = step_by_kind(w, f, e, m->table, careful);

	if (ret == WALK_NO_TABLE)
		rules_cut(key, offset, RULES_CUT_TABLE);
	else if (ret == WALK_NO_RULE)
		rules_cut(key, offset, RULES_CUT_RULE);
	else if (ret == WALK_NO_KIND)
		rules_cut(key, offset, RULES_CUT_KIND);
	return ret;
}

/*
 * What a task has of uprobes is its own, and freed by itself. 6.12 frees it before it is taken
 * from the task, which may be interrupted in between: so it is read as what may be gone.
 */
static noinline const struct return_instance *first_instance(const struct uprobe_task *utask)
{
	struct return_instance *first;

	return get_kernel_nofault(first, &utask->return_instances) ? NULL : first;
}

/*
 * The return address of a function with a return probe is that of a trampoline, the first
 * byte of a mapping without a file. The kernel has the true one; perf mends the entry.
 */
static noinline u64 through_trampoline(struct walk *w, u64 pc)
{
	const struct return_instance *i = w->instance;
	struct return_instance *next;
	const struct mapping *m;
	unsigned long address;

	m = find_mapping(w, pc);
	if (!m || m->file || m->start != pc)
		return pc;
	if (get_kernel_nofault(next, &i->next) || get_kernel_nofault(address, &i->orig_ret_vaddr))
		return pc;
	count(STEP_URETPROBE);
	w->instance = next;
	return address;
}

/* --- the loop --- */

#define window_open() user_access_begin((const void __user *)PAGE_SIZE, sizeof(u64))

/* Beside GO_ON and GO_CAREFULLY: the frame is not for the loop. */
#define GO_SPECIAL (-3)

/**
 * struct pass - the frame that the loop has come to, and what it needs all along
 * @pc: as in struct frame.
 * @sp: likewise.
 * @fp: likewise.
 * @other: likewise.
 * @at: an address in the code: @pc, or, if that is a return address, the one before.
 * @m: a mapping, of @at once that was found.
 * @step: the rule of @at, likewise.
 * @next: room for the next entry.
 * @end: of the room for entries.
 * @limit: of addresses.
 * @steps: see struct walk.
 * @mask: likewise.
 *
 * What it costs is counted (rules_cost.c): all that takes one is inlined, so that its
 * members are registers.
 */
struct pass {
	u64 pc, sp, fp, other, at;
	struct mapping *m;
	struct step *step;
	u64 *next, *end;
	u64 limit;
	struct step *steps;
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
 * The rule of the frame's code, in @p->step. The window is open. GO_ON: it still is, else it
 * is closed.
 */
static __always_inline int pass_rule(struct pass *p, struct walk *w, const bool careful)
{
	u64 key;

	if (careful && unlikely(w->instance && p->at != p->pc)) {
		user_access_end();
		p->pc = through_trampoline(w, p->pc);
		p->at = p->pc - 1;
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
	p->step = &p->steps[(key ^ key >> CACHE_BITS) & p->mask];
	if (unlikely(p->step->key != key)) {
		user_access_end();
		look_up_rule(w, p->m, p->at, p->step);
		if (!window_open())
			return WALK_REFUSED;
	}
	return GO_ON;
}

/* The frame's CFA by that rule, as an address that may be read. */
static __always_inline int pass_cfa(const struct pass *p, struct walk *w, const bool careful,
				    u64 *cfa)
{
	u32 rule = p->step->cfa;

	*cfa = p->sp + rule;
	if (unlikely(rule & STEP_FLAGS)) {
		if (rule & STEP_SPECIAL)
			return GO_SPECIAL;
		*cfa = p->fp + (rule & ~STEP_FLAGS);
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
	const struct step *e = p->step;

	if (!WALK_LINK_REGISTER) {
		unsafe_get_user(p->pc, (u64 __user *)(cfa - 8), fault);
		if (careful && e->saved)
			unsafe_get_user(p->other, (u64 __user *)at_words(cfa, e->saved), fault);
	} else if (likely(e->saved)) {
		unsafe_get_user(p->pc, (u64 __user *)at_words(cfa, e->saved), fault);
		p->pc = walk_arch_strip(p->pc);
	} else if (p->at == p->pc) {
		p->pc = walk_arch_strip(p->other);
	} else {
		return WALK_BAD_CFA;
	}
	if (e->fp)
		unsafe_get_user(p->fp, (u64 __user *)at_words(cfa, e->fp), fault);
	p->sp = cfa;
	p->at = p->pc - 1;
	return GO_ON;
fault:
	return WALK_NO_MEMORY;
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
	return ret;
}

/* A frame that it cannot pass. @f: room for it. Return: see step_special(). */
static __always_inline int pass_special(struct pass *p, struct walk *w, struct frame *f,
					const bool careful)
{
	int ret, entry;

	*f = (struct frame){ p->pc, p->sp, p->fp, p->other };
	w->exact = p->at == p->pc;
	if (p->step->cfa & STEP_SPECIAL)
		ret = step_special(w, f, p->m, p->step, careful);
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
 * probes, and an sp that is not known.
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
		.steps = w->step,
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

/*
 * The instruction under a uprobe is made elsewhere, in memory that no table is about. From
 * there @pc goes back to where it lies.
 */
static noinline u64 unstepped(u64 pc)
{
	const struct uprobe_task *utask = current->utask;
	unsigned long copy, original;
	struct uprobe *active;

	if (get_kernel_nofault(active, &utask->active_uprobe) ||
	    get_kernel_nofault(copy, &utask->xol_vaddr) ||
	    get_kernel_nofault(original, &utask->vaddr))
		return pc;
	/* @pc may also be just behind it: executed, not yet moved back. */
	if (!active || pc - copy > UPROBE_XOL_SLOT_BYTES)
		return pc;
	return original + (pc - copy);
}

static __always_inline void walk_begin(struct walk *w, struct frame *f)
{
	walk_arch_start(f, w->regs);
	if (unlikely(current->utask))
		f->pc = unstepped(f->pc);
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
	if (unlikely(w->instance))
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
	w->step = memory->step;
	w->mask = (1 << CACHE_BITS) - 1;
	ret = walk_all(w);
	barrier();
	WRITE_ONCE(memory->busy, 0);
	return ret;
}

/* It interrupted another walk on this CPU. */
static noinline int walk_nested(struct walk *w)
{
	struct space space;
	struct step step = {};

	space.nr = 0;
	w->space = &space;
	w->step = &step;
	w->mask = 0;
	return walk_all(w);
}

int walk_user(const struct pt_regs *regs, u64 *dst, unsigned int max)
{
	struct memory *mem = raw_cpu_read(memories);
	struct walk w = {
		.regs = regs,
		.mm = current->mm,
		.dst = dst,
		.max = min(max, WALK_MAX),
		.instance = unlikely(current->utask) ? first_instance(current->utask) : NULL,
	};
	int ret;

	if (unlikely(!walk_arch_ok(regs))) {
		count(WALK_REFUSED);
		return -1;
	}
	/* As preemption is disabled, this is an RCU section. */
	pagefault_disable();
	if (likely(!READ_ONCE(mem->busy)))
		ret = walk_remembering(&w, mem);
	else
		ret = walk_nested(&w);
	pagefault_enable();
	if (unlikely(!w.nr && ret != WALK_WHOLE && ret != WALK_ZERO && ret != WALK_ROOM &&
		     ret != WALK_NO_CODE)) {
		count(FIRST_UNKNOWN);
		return -1;
	}
	count(ret);
	return w.nr;
}

/* --- counters --- */

struct count_attribute {
	struct kobj_attribute attr;
	unsigned int what;
};

static ssize_t count_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	unsigned int what = container_of(attr, struct count_attribute, attr)->what;
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu(counts.count[what], cpu);
	return sysfs_emit(buf, "%llu\n", sum);
}

#define COUNT(_name, _what)                                    \
	static struct count_attribute _name##_attr = {         \
		.attr = __ATTR(_name, 0444, count_show, NULL), \
		.what = (_what),                               \
	}

COUNT(whole, WALK_WHOLE);
COUNT(zero, WALK_ZERO);
COUNT(room, WALK_ROOM);
COUNT(cut_no_code, WALK_NO_CODE);
COUNT(cut_no_table, WALK_NO_TABLE);
COUNT(cut_no_rule, WALK_NO_RULE);
COUNT(cut_no_kind, WALK_NO_KIND);
COUNT(cut_no_memory, WALK_NO_MEMORY);
COUNT(cut_bad_cfa, WALK_BAD_CFA);
COUNT(refused, WALK_REFUSED);
COUNT(first_unknown, FIRST_UNKNOWN);
COUNT(step_record, STEP_BY_RECORD);
COUNT(step_signal, STEP_SIGNAL);
COUNT(step_uretprobe, STEP_URETPROBE);
COUNT(mappings_read, MAPPINGS_READ);
COUNT(rules_read, RULES_READ);

static ssize_t tables_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lu\n", rules_tables());
}

static ssize_t listeners_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", rules_listeners());
}

static ssize_t files_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", rules_files());
}

static struct kobj_attribute tables_attr = __ATTR_RO(tables);
static struct kobj_attribute files_attr = __ATTR_RO(files);
static struct kobj_attribute listeners_attr = __ATTR_RO(listeners);

static struct attribute *count_attrs[] = {
	&tables_attr.attr,
	&files_attr.attr,
	&listeners_attr.attr,
	&whole_attr.attr.attr,
	&zero_attr.attr.attr,
	&room_attr.attr.attr,
	&cut_no_code_attr.attr.attr,
	&cut_no_table_attr.attr.attr,
	&cut_no_rule_attr.attr.attr,
	&cut_no_kind_attr.attr.attr,
	&cut_no_memory_attr.attr.attr,
	&cut_bad_cfa_attr.attr.attr,
	&refused_attr.attr.attr,
	&first_unknown_attr.attr.attr,
	&step_record_attr.attr.attr,
	&step_signal_attr.attr.attr,
	&step_uretprobe_attr.attr.attr,
	&mappings_read_attr.attr.attr,
	&rules_read_attr.attr.attr,
	NULL,
};

const struct attribute_group walk_group = {
	.attrs = count_attrs,
};

int __init walk_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct memory *m = kvzalloc_node(sizeof(*m), GFP_KERNEL, cpu_to_node(cpu));

		if (!m) {
			walk_exit();
			return -ENOMEM;
		}
		per_cpu(memories, cpu) = m;
	}
	return 0;
}

/* The hooks are out already, or were never in. */
void walk_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		kvfree(per_cpu(memories, cpu));
}
