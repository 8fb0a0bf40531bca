/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * walk_x86.h - the architecture functions of walk.c, for x86-64.
 */
#ifndef USHSTK_WALK_X86_H
#define USHSTK_WALK_X86_H

#include <asm/fixmap.h>
#include <asm/mmu_context.h>
#include <asm/perf_event.h>
#include <asm/processor-flags.h>
#include <asm/ptrace.h>
#include <asm/sigcontext.h>
#include <asm/special_insns.h>

#include "walk_call_x86.h"

/* The return address is on the stack. The other register that rules save is rbx. */
#define WALK_LINK_REGISTER false
#define WALK_CALL_PUSHES 8 /* bytes */
#define WALK_DWARF_RAX 0
#define WALK_DWARF_RBX 3
#define WALK_DWARF_RBP 6

/* Sets the innermost frame from the registers. */
static __always_inline void walk_arch_start(struct frame *f, const struct pt_regs *regs)
{
	f->pc = regs->ip;
	f->sp = regs->sp;
	f->fp = regs->bp;
	f->other = regs->bx;
}

static __always_inline u64 walk_arch_strip(u64 addr)
{
	return addr;
}

/* Returns a number that identifies @mm and is never used again. */
static __always_inline u64 walk_arch_mm_id(const struct mm_struct *mm)
{
	return mm->context.ctx_id;
}

/*
 * Returns whether the page tables in use are those of current, and the code is 64-bit. This is what
 * nmi_uaccess_okay() tells, which modules cannot call. It cannot be seen in a Xen PV domain, so the
 * result is false there.
 */
static __always_inline bool walk_arch_ok(const struct pt_regs *regs)
{
	/* user_64bit_mode() of 6.12 takes a pointer that is not const. */
	return user_64bit_mode((struct pt_regs *)regs) &&
	       !(regs->flags & (X86_VM_MASK | PERF_EFLAGS_VM)) &&
	       !cpu_feature_enabled(X86_FEATURE_XENPV) &&
	       (__native_read_cr3() & CR3_ADDR_MASK) == __pa(current->mm->pgd);
}

/*
 * Returns the limit for walk_arch_clamp(); the page there is never mapped. The asm() keeps the
 * compiler from computing it again in each frame.
 */
static __always_inline u64 walk_arch_limit(void)
{
	u64 limit = TASK_SIZE_MAX - PAGE_SIZE;

	asm("" : "+r"(limit));
	return limit;
}

/*
 * Returns an address that may be read, whatever @addr is, without a branch that could be
 * mispredicted. Words that are read lie at most 2^15 words below the result. If such an address is
 * below 0, it wraps to the end of all addresses, beyond all that the kernel ever maps
 * (Documentation/arch/x86/x86_64/mm.rst: unused hole). Then the read fails like the read of a page
 * that is not present.
 */
static_assert(FIXADDR_TOP < -8UL * (S16_MAX + 1));

static __always_inline u64 walk_arch_clamp(u64 addr, u64 limit)
{
	asm("cmp %1,%0; cmova %1,%0" : "+r"(addr) : "rm"(limit) : "cc");
	return addr;
}

/* Returns a register by its DWARF number. */
static inline u64 walk_arch_register(const struct pt_regs *regs, unsigned int dwarf)
{
	switch (dwarf) {
	case 0:
		return regs->ax;
	case 1:
		return regs->dx;
	case 2:
		return regs->cx;
	case 3:
		return regs->bx;
	case 4:
		return regs->si;
	case 5:
		return regs->di;
	case 6:
		return regs->bp;
	case 7:
		return regs->sp;
	case 8:
		return regs->r8;
	case 9:
		return regs->r9;
	case 10:
		return regs->r10;
	case 11:
		return regs->r11;
	case 12:
		return regs->r12;
	case 13:
		return regs->r13;
	case 14:
		return regs->r14;
	}
	return regs->r15;
}

/* Offset of uc_mcontext from sp, in the function to which a signal handler returns. */
#define WALK_CONTEXT 40
#define WALK_CONTEXT_PC (WALK_CONTEXT + offsetof(struct sigcontext_64, ip))
#define WALK_CONTEXT_SP (WALK_CONTEXT + offsetof(struct sigcontext_64, sp))
#define WALK_CONTEXT_FP (WALK_CONTEXT + offsetof(struct sigcontext_64, bp))
#define WALK_CONTEXT_OTHER (WALK_CONTEXT + offsetof(struct sigcontext_64, bx))

#endif /* USHSTK_WALK_X86_H */
