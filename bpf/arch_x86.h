/* SPDX-License-Identifier: GPL-2.0-only */
/* arch_x86.h - what the BPF walk needs to know of x86-64. */
#ifndef BPF_ARCH_X86_H
#define BPF_ARCH_X86_H

#include <asm/sigcontext.h>

#include "kmod/walk_call_x86.h"

/* The return address is on the stack. What rules say of another register is about rbx. */
#define WALK_LINK_REGISTER false
#define WALK_CALL_PUSHES 8 /* bytes */
#define WALK_DWARF_RAX 0
#define WALK_DWARF_RBX 3
#define WALK_DWARF_RBP 6

/* The CPU makes loads in their order, so a stamp is older than what is read after it. */
#define WALK_REMEMBERS true

#define UPROBE_XOL_SLOT_BYTES 128

/* Where a thread has the address of its table of thread-local blocks (glibc's tcbhead_t.dtv). */
#define WALK_THREAD_TABLE 8

/* Beyond the end of any user space. */
#define TASK_SIZE_MAX (1ull << 56)

/* Indices of the words of struct pt_regs, which user space knows from ptrace(2). */
enum {
	PT_R15,
	PT_R14,
	PT_R13,
	PT_R12,
	PT_BP,
	PT_BX,
	PT_R11,
	PT_R10,
	PT_R9,
	PT_R8,
	PT_AX,
	PT_CX,
	PT_DX,
	PT_SI,
	PT_DI,
	PT_ORIG_AX,
	PT_IP,
	PT_CS,
	PT_FLAGS,
	PT_SP,
};

/* Returns whether the registers of a program's context are those of user space. */
#define walk_arch_user(regs) (((regs)->cs & 3) == 3)

#define USER_CS 0x33 /* of 64-bit code; the high half may hold other things (FRED) */

/* Reads the registers with which a walk begins. Returns false if the code is not 64-bit. */
static __always_inline bool walk_arch_start(struct frame *f, const u64 *pt)
{
	const volatile u64 *word = pt;

	f->other = word[PT_BX];
	f->fp = word[PT_BP];
	f->sp = word[PT_SP];
	f->pc = word[PT_IP];
	return (u16)word[PT_CS] == USER_CS;
}

/* The places of registers by their DWARF numbers, four bits each, but for the stack pointer's. */
#define PLACES                                                                                     \
	(PT_AX | PT_DX << 4 | PT_CX << 8 | PT_BX << 12 | PT_SI << 16 | PT_DI << 20 | PT_BP << 24 | \
	 (u64)PT_R8 << 32 | (u64)PT_R9 << 36 | (u64)PT_R10 << 40 | (u64)PT_R11 << 44 |             \
	 (u64)PT_R12 << 48 | (u64)PT_R13 << 52 | (u64)PT_R14 << 56 | (u64)PT_R15 << 60)
#define DWARF_RSP 7

/* Returns the index of a register in struct pt_regs by its DWARF number. */
static __always_inline u32 walk_arch_place(u32 dwarf)
{
	return dwarf == DWARF_RSP ? PT_SP : PLACES >> 4 * (dwarf & 15) & 15;
}

#define WALK_PT_PC PT_IP
#define WALK_PT_LIVE_FRAME PT_R14 /* struct language_live */
#define WALK_PT_LIVE PT_R15

/* Returns a number of the address space that no other one ever has. */
static __always_inline u64 walk_arch_space(struct task_struct *task)
{
	return BPF_CORE_READ(task, mm, context.ctx_id);
}

/* Returns the thread pointer. */
static __always_inline u64 walk_arch_thread(struct task_struct *task)
{
	return BPF_CORE_READ(task, thread.fsbase);
}

static __always_inline u64 walk_arch_strip(u64 addr)
{
	return addr;
}

/* Offsets in a signal frame, as in kmod/walk_x86.h. */
#define WALK_CONTEXT 40
#define WALK_CONTEXT_PC (WALK_CONTEXT + offsetof(struct sigcontext_64, ip))
#define WALK_CONTEXT_SP (WALK_CONTEXT + offsetof(struct sigcontext_64, sp))
#define WALK_CONTEXT_FP (WALK_CONTEXT + offsetof(struct sigcontext_64, bp))
#define WALK_CONTEXT_OTHER (WALK_CONTEXT + offsetof(struct sigcontext_64, bx))

#endif /* BPF_ARCH_X86_H */
