/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * arch.h - user shadow stacks of x86 (CET), as the tests in this folder use them
 *
 * The system calls that control them, the instructions that work on them, the
 * words the kernel puts there and the sizes it gives them.
 */
#ifndef FACTS_ARCH_H
#define FACTS_ARCH_H

#include "../generic.h"

/* Options and feature bits of arch_prctl(); asm/prctl.h has them since 6.6. */
#define SS_ARCH_ENABLE 0x5001
#define SS_ARCH_DISABLE 0x5002
#define SS_ARCH_LOCK 0x5003
#define SS_ARCH_UNLOCK 0x5004
#define SS_ARCH_STATUS 0x5005

#define SS_ENABLE (1UL << 0) /* ARCH_SHSTK_SHSTK */
#define SS_WRITE (1UL << 1) /* ARCH_SHSTK_WRSS */
#define SS_PUSH 0UL /* there is no such permission */

/* Whether map_shadow_stack() knows SS_SET_MARKER. */
#define SS_HAS_MARKER 0

/* The errno of a call that would change a locked feature. */
#define SS_LOCKED EPERM

/* What a kernel that knows shadow stacks answers on a CPU that does not. */
#define SS_ABSENT (-EOPNOTSUPP)
#define SS_ABSENT_STATUS 0 /* the same for status and lock */

ss_inline long ss_syscall(long nr, unsigned long a, unsigned long b, unsigned long c,
			  unsigned long d, unsigned long e)
{
	register unsigned long r10 asm("r10") = d;
	register unsigned long r8 asm("r8") = e;
	long ret;

	asm volatile("syscall"
		     : "=a"(ret)
		     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
		     : "rcx", "r11", "memory");
	return ret;
}

/* ---- Control: these return a negative errno or 0; @bits is a set of SS_* ---- */

ss_inline long ss_arch_prctl(int option, unsigned long arg)
{
	return ss_syscall(__NR_arch_prctl, option, arg, 0, 0, 0);
}

ss_inline long ss_status(unsigned long *bits)
{
	return ss_arch_prctl(SS_ARCH_STATUS, (unsigned long)bits);
}

/* Enables the features one by one, the shadow stack first: a call takes only one. */
ss_inline long ss_enable(unsigned long bits)
{
	long ret = 0;

	if (bits & SS_ENABLE)
		ret = ss_arch_prctl(SS_ARCH_ENABLE, SS_ENABLE);
	if (!ret && (bits & SS_WRITE))
		ret = ss_arch_prctl(SS_ARCH_ENABLE, SS_WRITE);
	return ret;
}

/* Disables. Disabling the shadow stack takes the write permission away, too. */
ss_inline long ss_disable(unsigned long bits)
{
	return ss_arch_prctl(SS_ARCH_DISABLE, bits & SS_ENABLE ? SS_ENABLE : bits);
}

ss_inline long ss_lock(unsigned long bits)
{
	return ss_arch_prctl(SS_ARCH_LOCK, bits);
}

/* ---- Instructions ---- */

/* Returns the shadow stack pointer; 0 when off, for RDSSP is then a NOP. */
ss_inline unsigned long ss_pointer(void)
{
	unsigned long ssp = 0;

	asm volatile("rdsspq %0" : "+r"(ssp) : : "memory");
	return ssp;
}

/* Stores to a shadow stack (SS_WRITE). */
ss_inline void ss_write(unsigned long addr, uint64_t val)
{
	asm volatile("wrssq %1, (%0)" : : "r"(addr), "r"(val) : "memory");
}

/* Drops the youngest entry. */
ss_inline void ss_pop(void)
{
	asm volatile("incsspq %0" : : "r"(1UL) : "memory");
}

/* Makes earlier stores to the shadow stack visible to loads, and earlier loads to stores. */
ss_inline void ss_sync(void)
{
	asm volatile("" : : : "memory");
}

/*
 * Switch to the shadow stack whose restore token is at @token, in two steps. The second returns the
 * address of the restore token that is left on the old one, whose pointer was @old.
 */
ss_inline void ss_switch_begin(unsigned long token)
{
	asm volatile("rstorssp (%0)" : : "r"(token) : "memory");
}

ss_inline unsigned long ss_switch_end(unsigned long old)
{
	asm volatile("saveprevssp" : : : "memory");
	return old - 8;
}

ss_inline unsigned long ss_switch(unsigned long token)
{
	unsigned long old = ss_pointer();

	ss_switch_begin(token);
	return ss_switch_end(old);
}

/*
 * Enter and leave a function that protects its return address. Every call
 * does here; riscv needs instructions that Debian's compilers do not emit.
 */
#define ss_enter(ra) ((void)(ra))
#define ss_leave(ra) ((void)(ra))

/* ---- Other stacks ---- */

/*
 * Leave for @to, go on here when something switches to @from. No CALL and no
 * RET: the shadow stacks hold nothing but the callers' entries.
 */
ss_inline void ss_swapcontext(struct ss_context *from, struct ss_context *to)
{
	asm volatile("rdsspq	%%rax\n\t"
		     "lea	-8(%%rax), %%rax\n\t"
		     "mov	%%rax, 24(%0)\n\t"
		     "mov	%%rsp, 0(%0)\n\t"
		     "mov	%%rbp, 8(%0)\n\t"
		     "lea	1f(%%rip), %%rax\n\t"
		     "mov	%%rax, 16(%0)\n\t"
		     "mov	24(%1), %%rax\n\t"
		     "rstorssp	(%%rax)\n\t"
		     "saveprevssp\n\t"
		     "mov	0(%1), %%rsp\n\t"
		     "mov	8(%1), %%rbp\n\t"
		     "jmp	*16(%1)\n"
		     "1:"
		     : "+D"(from), "+S"(to)
		     :
		     : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
		       "r15", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
		       "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc",
		       "memory");
}

/* The value of %rsp that a function entered without CALL expects, for a stack up to @top. */
#define SS_ENTRY_SP(top) ((top)-8)

/*
 * clone3() with a function for the child to call; the child then exits with 0.
 * @args: struct clone_args, with a stack of its own when CLONE_VM is given.
 */
ss_inline long ss_clone3(void *args, unsigned long size, void (*fn)(void *), void *arg)
{
	register void (*r12)(void *) asm("r12") = fn;
	register void *r13 asm("r13") = arg;
	long ret;

	asm volatile("syscall\n\t"
		     "test	%%rax, %%rax\n\t"
		     "jnz	1f\n\t"
		     "xor	%%ebp, %%ebp\n\t"
		     "mov	%%r13, %%rdi\n\t"
		     "call	*%%r12\n\t"
		     "xor	%%edi, %%edi\n\t"
		     "mov	%[exit], %%eax\n\t"
		     "syscall\n"
		     "1:"
		     : "=a"(ret)
		     : "a"((long)__NR_clone3), "D"(args), "S"(size), "r"(r12),
		       "r"(r13), [exit] "i"(__NR_exit)
		     : "rcx", "r11", "memory");
	return ret;
}

/* ---- What the kernel builds ---- */

/* Returns the bytes of the shadow stack that goes with an RLIMIT_STACK of @stack bytes. */
ss_inline unsigned long ss_size(unsigned long stack, unsigned long page)
{
	unsigned long size = stack < 4 * SS_GIB ? stack : 4 * SS_GIB;

	return ss_pages(size, page);
}

/* Whether disabling keeps the mapping, until the thread ends. */
#define SS_DISABLE_KEEPS 0

/* The answer to enabling where that size is 0 bytes. */
#define SS_NO_SIZE (-EINVAL)

/* Returns the bytes of the shadow stack of a thread made by clone3() with .stack_size. */
ss_inline unsigned long ss_thread_size(unsigned long stack, unsigned long page)
{
	return ss_pages(stack, page);
}

/* Words that the kernel puts at the outer end of a stack that it makes. */
#define SS_END_WORDS 0

/* Returns the restore token that belongs at @addr. */
ss_inline uint64_t ss_token(unsigned long addr)
{
	return (addr + 8) | 1;
}

/* Returns the word at the token's place between the two steps (previous-SSP token). */
ss_inline uint64_t ss_half_token(unsigned long old)
{
	return old | 3;
}

/*
 * A signal pushes the pointer it interrupted, marked by bit 63, and then
 * sa_restorer, to which the handler returns.
 */
#define SS_SIGNAL_WORDS 2
#define SS_SIGNAL_TOKEN 1 /* index from the handler's pointer */
#define SS_SIGNAL_RESTORER 0 /* index from the handler's pointer; -1: there is none */
#define SS_SIGNAL_CLEARED 0 /* whether return clears the token */

ss_inline uint64_t ss_signal_token(unsigned long addr, unsigned long old)
{
	(void)addr;
	return old | 1UL << 63;
}

/* Whether the signal frame keeps the shadow stack pointer, which the function below returns. */
#define SS_SIGNAL_FRAME 0

ss_inline unsigned long ss_frame_pointer(void *ucontext)
{
	(void)ucontext;
	return 0;
}

/* The errno of mprotect() that would make a shadow stack executable. */
#define SS_MPROTECT_EXEC 0

/* ---- ptrace ---- */

#define SS_REGSET 0x204 /* NT_X86_SHSTK */

struct ss_regset {
	uint64_t ssp;
};

ss_inline void ss_regset_set_pointer(struct ss_regset *r, unsigned long ssp)
{
	r->ssp = ssp;
}

#define ss_regset_pointer(r) ((r)->ssp)

/* The answer for a task with shadow stacks off. */
#define SS_REGSET_OFF (-ENODEV)

/* Whether odd and kernel pointers are refused. */
#define SS_REGSET_CHECKED 1

/* ---- Faults ---- */

/* Whether a system call that stores to a shadow stack may never return. */
#define SS_STORE_NEVER_RETURNS 0

/* The signal that answers ss_write() without SS_WRITE. */
#define SS_REFUSED_SIGNAL SIGILL
#define SS_REFUSED_CODE ILL_ILLOPN

/* Whether si_addr of SEGV_CPERR is the instruction; 0 otherwise. */
#define SS_CPERR_ADDR_PC 0

#endif
