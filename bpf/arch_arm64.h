/* SPDX-License-Identifier: GPL-2.0-only */
/* arch_arm64.h - what the BPF walk needs to know of arm64. */
#ifndef BPF_ARCH_ARM64_H
#define BPF_ARCH_ARM64_H

#include "kmod/walk_call_arm64.h"

/* A call leaves the return address in x30. What rules say of another register is about it. */
#define WALK_LINK_REGISTER true
#define WALK_CALL_PUSHES 0 /* bytes */

/*
 * The CPU may make loads in another order, so a stamp may be newer than what was read before it.
 * Mappings are looked up anew in each walk.
 */
#define WALK_REMEMBERS false

/* Beyond the end of any user space. Bit 55 tells the kernel's addresses from others. */
#define TASK_SIZE_MAX (1ull << 55)

/* Where a thread has the address of its table of thread-local blocks (glibc's tcbhead_t.dtv). */
#define WALK_THREAD_TABLE 0

/* Where the kernel steps a probed instruction: an instruction has four bytes. */
#define UPROBE_XOL_SLOT_BYTES 4

/* Indices of the words of struct user_pt_regs, with which struct pt_regs begins. */
enum {
	PT_FP = 29,
	PT_LR = 30,
	PT_SP = 31,
	PT_PC = 32,
	PT_STATE = 33,
};

#define STATE_32_BIT 0x10 /* PSR_MODE32_BIT */

/* Returns whether the registers of a program's context are those of user space. */
#define walk_arch_user(regs) (!((regs)->pstate & 0xf))

/* Reads the registers with which a walk begins. Returns false if the code is not 64-bit. */
static __always_inline bool walk_arch_start(struct frame *f, const u64 *pt)
{
	const volatile u64 *word = pt;

	f->fp = word[PT_FP];
	f->other = word[PT_LR];
	f->sp = word[PT_SP];
	f->pc = word[PT_PC];
	return !(word[PT_STATE] & STATE_32_BIT);
}

/* Returns the index of a register in struct user_pt_regs by its DWARF number. */
static __always_inline u32 walk_arch_place(u32 dwarf)
{
	return dwarf & 31;
}

#define WALK_PT_PC PT_PC
#define WALK_PT_LIVE_FRAME 27 /* No interpreter with struct language_live is known here. */
#define WALK_PT_LIVE 28

/*
 * Returns a number of the address space that no other one ever has: its ASID with the generation. It
 * gets another one when all ASIDs were given; no two address spaces have the same in one generation.
 */
static __always_inline u64 walk_arch_space(struct task_struct *task)
{
	const struct task_struct___arm64 *t = (const void *)task;

	return BPF_CORE_READ(t, mm, context.id.counter);
}

/* Returns the thread pointer, as it was when the thread last got its CPU. */
static __always_inline u64 walk_arch_thread(struct task_struct *task)
{
	const struct task_struct___arm64 *t = (const void *)task;

	return BPF_CORE_READ(t, thread.uw.tp_value);
}

/*
 * Removes the pointer authentication code from a return address: it is in the bits from the end of
 * user space up to bit 54, as in ptrauth_strip_user_insn_pac(). The kernel's addresses, of which
 * bit 55 is set, stay as they are.
 */
static __always_inline u64 walk_arch_strip(u64 addr)
{
	u64 end = current->mm->task_size;

	return addr & 1ull << 55 ? addr : addr & ~(((1ull << 55) - 1) & ~(end - 1));
}

/*
 * Offsets from sp to the saved registers, in the function to which a signal handler returns. They
 * are in the context (struct sigcontext) of struct ucontext, behind siginfo, which has 128 bytes.
 * The context is aligned to 16 bytes and begins with the fault's address.
 */
#define WALK_CONTEXT (128 + 176)
#define WALK_CONTEXT_X(n) (WALK_CONTEXT + 8 + 8 * (n))
#define WALK_CONTEXT_FP WALK_CONTEXT_X(29)
#define WALK_CONTEXT_OTHER WALK_CONTEXT_X(30)
#define WALK_CONTEXT_SP WALK_CONTEXT_X(31)
#define WALK_CONTEXT_PC WALK_CONTEXT_X(32)

#endif /* BPF_ARCH_ARM64_H */
