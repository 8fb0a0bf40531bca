/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * walk_arm64.h - the architecture functions of walk.c, for arm64.
 */
#ifndef USHSTK_WALK_ARM64_H
#define USHSTK_WALK_ARM64_H

#include <asm/mmu.h>
#include <asm/pointer_auth.h>
#include <asm/ptrace.h>
#include <asm/sigcontext.h>
#include <asm/ucontext.h>
#include <asm/signal.h>

#include "walk_call_arm64.h"

/* A call leaves the return address in a register, x30, which is @other in struct frame. */
#define WALK_LINK_REGISTER true
#define WALK_CALL_PUSHES 0

/* Sets the innermost frame from the registers. */
static __always_inline void walk_arch_start(struct frame *f, const struct pt_regs *regs)
{
	f->pc = regs->pc;
	f->sp = regs->sp;
	f->fp = regs->regs[29];
	f->other = regs->regs[30];
}

/* Removes the pointer authentication code from a return address. */
static __always_inline u64 walk_arch_strip(u64 addr)
{
	return ptrauth_strip_user_insn_pac(addr);
}

/*
 * Returns the address space identifier of @mm with its generation. In one generation each
 * identifier is given to one mm only, and an mm that runs has an identifier.
 */
static __always_inline u64 walk_arch_mm_id(const struct mm_struct *mm)
{
	return atomic64_read(&mm->context.id);
}

/*
 * Returns whether the walk may read user memory. During a context switch current may not be the
 * task whose mm is loaded.
 */
static __always_inline bool walk_arch_ok(const struct pt_regs *regs)
{
	return !compat_user_mode(regs) && (!ushstk_may_switch() || ushstk_memory_is_own());
}

/*
 * Reads that use the rights of user space get only user memory, whatever the address is, so there
 * is nothing to clamp.
 */
static __always_inline u64 walk_arch_limit(void)
{
	return 0;
}

static __always_inline u64 walk_arch_clamp(u64 addr, u64 limit)
{
	return addr;
}

/* Returns a register by its DWARF number, at most x30. */
static inline u64 walk_arch_register(const struct pt_regs *regs, unsigned int dwarf)
{
	return regs->regs[min(dwarf, 30u)];
}

/*
 * Offsets from sp to the saved registers, in the function to which a signal handler returns. They
 * are in the context behind siginfo.
 */
#define WALK_CONTEXT (128 + offsetof(struct ucontext, uc_mcontext))
#define WALK_CONTEXT_PC (WALK_CONTEXT + offsetof(struct sigcontext, pc))
#define WALK_CONTEXT_SP (WALK_CONTEXT + offsetof(struct sigcontext, sp))
#define WALK_CONTEXT_FP (WALK_CONTEXT + offsetof(struct sigcontext, regs[29]))
#define WALK_CONTEXT_OTHER (WALK_CONTEXT + offsetof(struct sigcontext, regs[30]))

#endif /* USHSTK_WALK_ARM64_H */
