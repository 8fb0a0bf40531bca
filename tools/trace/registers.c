// SPDX-License-Identifier: GPL-2.0-or-later
/* registers.c - read the registers of a stopped thread, for each machine. */
#include <elf.h>
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "tools/trace/trace.h"

#if defined(__x86_64__)
int trace_registers(int tid, struct shstk_regs *regs, uint64_t *used, int64_t *call)
{
	struct user_regs_struct u;
	struct iovec iov = { &u, sizeof(u) };

	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &iov))
		return -errno;
	*regs = (struct shstk_regs){
		.size = sizeof(*regs),
		.known = 0xffff,
		.pc = u.rip,
		.r = { u.rax, u.rdx, u.rcx, u.rbx, u.rsi, u.rdi, u.rbp, u.rsp, u.r8, u.r9, u.r10,
		       u.r11, u.r12, u.r13, u.r14, u.r15 },
		.thread_pointer = u.fs_base,
	};
	*used = u.rsp - TRACE_RED_ZONE;
	*call = (int64_t)u.orig_rax;
	return 0;
}
#elif defined(__aarch64__)
int trace_registers(int tid, struct shstk_regs *regs, uint64_t *used, int64_t *call)
{
	struct user_regs_struct u;
	struct iovec iov = { &u, sizeof(u) };
	struct user_pac_mask {
		uint64_t data, insn;
	} mask;
	uint64_t tls;

	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &iov))
		return -errno;
	*regs = (struct shstk_regs){
		.size = sizeof(*regs),
		.known = 0xffffffff,
		.pc = u.pc,
	};
	for (int i = 0; i < 31; i++)
		regs->r[i] = u.regs[i];
	regs->r[31] = u.sp;
	*used = u.sp;
	*call = (int64_t)u.regs[8];
	iov = (struct iovec){ &mask, sizeof(mask) };
	if (!ptrace(PTRACE_GETREGSET, tid, NT_ARM_PAC_MASK, &iov))
		regs->pac_mask = mask.insn;
	iov = (struct iovec){ &tls, sizeof(tls) };
	if (!ptrace(PTRACE_GETREGSET, tid, NT_ARM_TLS, &iov))
		regs->thread_pointer = tls;
	return 0;
}
#else
int trace_registers(int tid, struct shstk_regs *regs, uint64_t *used, int64_t *call)
{
	(void)tid;
	(void)regs;
	(void)used;
	(void)call;
	return -EOPNOTSUPP;
}
#endif
