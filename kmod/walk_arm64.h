/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * walk_arm64.h - what walk.c needs to know of arm64.
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

/* A call leaves the return address in a register, x30, which struct frame's other is. */
#define WALK_LINK_REGISTER true
#define WALK_CALL_PUSHES 0

static __always_inline void walk_arch_start(struct frame *f, const struct pt_regs *regs)
{
	f->pc = regs->pc;
	f->sp = regs->sp;
	f->fp = regs->regs[29];
	f->other = regs->regs[30];
}

static __always_inline u64 walk_arch_strip(u64 addr)
{
	return ptrauth_strip_user_insn_pac(addr);
}

/*
 * The address space identifier with its generation: in one generation each is given to
 * one mm only, and an mm that runs has one.
 */
static __always_inline u64 walk_arch_mm_id(const struct mm_struct *mm)
{
	return atomic64_read(&mm->context.id);
}

/* While a task is switched, current is not yet the one whose mm is loaded. */
static __always_inline bool walk_arch_ok(const struct pt_regs *regs)
{
	return !compat_user_mode(regs) && (!ushstk_may_switch() || ushstk_memory_is_own());
}

/*
 * What is read with the rights of user space is the user's, whatever the address: nothing is
 * to be clamped.
 */
static __always_inline u64 walk_arch_limit(void)
{
	return 0;
}

static __always_inline u64 walk_arch_clamp(u64 addr, u64 limit)
{
	return addr;
}

/* Up to x30. */
static inline u64 walk_arch_register(const struct pt_regs *regs, unsigned int dwarf)
{
	return regs->regs[min(dwarf, 30u)];
}

/* From sp in the function that a signal handler returns to: behind siginfo. */
#define WALK_CONTEXT (128 + offsetof(struct ucontext, uc_mcontext))
#define WALK_CONTEXT_PC (WALK_CONTEXT + offsetof(struct sigcontext, pc))
#define WALK_CONTEXT_SP (WALK_CONTEXT + offsetof(struct sigcontext, sp))
#define WALK_CONTEXT_FP (WALK_CONTEXT + offsetof(struct sigcontext, regs[29]))
#define WALK_CONTEXT_OTHER (WALK_CONTEXT + offsetof(struct sigcontext, regs[30]))

#endif /* USHSTK_WALK_ARM64_H */
