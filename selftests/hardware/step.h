/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * step.h - another thread's registers, and its next instruction, by ptrace.
 */
#ifndef HARDWARE_STEP_H
#define HARDWARE_STEP_H

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "shstk.h"

static inline int step_regs(pid_t pid, struct shstk_regs *r)
{
	struct user_regs_struct u;
	struct iovec iov = { &u, sizeof(u) };

	*r = (struct shstk_regs){ .size = sizeof(*r) };
	if (ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &iov))
		return -errno;
#ifdef __x86_64__
	r->r[0] = u.rax;
	r->r[1] = u.rdx;
	r->r[2] = u.rcx;
	r->r[3] = u.rbx;
	r->r[4] = u.rsi;
	r->r[5] = u.rdi;
	r->r[6] = u.rbp;
	r->r[7] = u.rsp;
	r->r[8] = u.r8;
	r->r[9] = u.r9;
	r->r[10] = u.r10;
	r->r[11] = u.r11;
	r->r[12] = u.r12;
	r->r[13] = u.r13;
	r->r[14] = u.r14;
	r->r[15] = u.r15;
	r->known = 0xffff;
	r->pc = u.rip;
#else
	struct {
		uint64_t data, insn;
	} mask;

	memcpy(r->r, u.regs, sizeof(u.regs));
	r->r[31] = u.sp;
	r->known = 0xffffffff;
	r->pc = u.pc;
	iov = (struct iovec){ &mask, sizeof(mask) };
	if (!ptrace(PTRACE_GETREGSET, pid, (void *)0x406, &iov))
		r->pac_mask = mask.insn;
#endif
	return 0;
}

/*
 * One instruction on. A system call is gone over by its two stops: stepped, it may
 * trap inside the kernel where the CPU is emulated. At the first stop pc is already
 * behind the instruction, which says nothing of the program.
 */
static inline int step_on(pid_t pid, int sig)
{
#ifdef __x86_64__
	struct shstk_regs regs;
	uint16_t insn;
	int status;

	if (!step_regs(pid, &regs) && !shstk_read_process(&pid, regs.pc, &insn, sizeof(insn)) &&
	    insn == 0x050f) {
		if (ptrace(PTRACE_SYSCALL, pid, 0, sig) || waitpid(pid, &status, 0) != pid ||
		    !WIFSTOPPED(status))
			return -1;
		return ptrace(PTRACE_SYSCALL, pid, 0, 0);
	}
#endif
	return ptrace(PTRACE_SINGLESTEP, pid, 0, sig);
}

#endif
