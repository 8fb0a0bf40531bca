/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * arch.h - user shadow stacks of riscv (Zicfiss), as the tests in this folder use them
 *
 * See ../x86/arch.h. Neither the compiler nor
 * the assembler of Debian 12 knows Zicfiss: its instructions are written by
 * their encoding, and functions protect their return address by ss_enter()
 * and ss_leave().
 */
#ifndef FACTS_ARCH_H
#define FACTS_ARCH_H

#include "../generic.h"

#define SS_ENABLE (1UL << 0) /* PR_SHADOW_STACK_ENABLE */
#define SS_WRITE 0UL /* SSAMOSWAP is always allowed */
#define SS_PUSH 0UL /* there is no such permission */

/* Whether map_shadow_stack() knows SS_SET_MARKER. */
#define SS_HAS_MARKER 0

/* The errno of a call that would change a locked feature. */
#define SS_LOCKED EINVAL

/* What a kernel that knows shadow stacks answers on a CPU that does not. */
#define SS_ABSENT (-EINVAL)
#define SS_ABSENT_STATUS (-EINVAL) /* the same for status and lock */

ss_inline long ss_syscall(long nr, unsigned long a, unsigned long b, unsigned long c,
			  unsigned long d, unsigned long e)
{
	register long a7 asm("a7") = nr;
	register unsigned long a0 asm("a0") = a;
	register unsigned long a1 asm("a1") = b;
	register unsigned long a2 asm("a2") = c;
	register unsigned long a3 asm("a3") = d;
	register unsigned long a4 asm("a4") = e;

	asm volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4) : "memory");
	return a0;
}

/* ---- Control: these return a negative errno or 0; @bits is a set of SS_* ---- */

ss_inline long ss_status(unsigned long *bits)
{
	return ss_prctl(SS_PR_GET, (unsigned long)bits);
}

ss_inline long ss_enable(unsigned long bits)
{
	return ss_prctl(SS_PR_SET, bits);
}

ss_inline long ss_disable(unsigned long bits)
{
	return ss_prctl(SS_PR_SET, SS_ENABLE & ~bits);
}

/* The lock is for the whole feature: there are no bits to choose. */
ss_inline long ss_lock(unsigned long bits)
{
	(void)bits;
	return ss_prctl(SS_PR_LOCK, 0);
}

/* ---- Instructions ---- */

/* Returns the shadow stack pointer; 0 when off, as SSRDP is then a may-be-operation. */
ss_inline unsigned long ss_pointer(void)
{
	register unsigned long a0 asm("a0");

	asm volatile(".word 0xcdc04573" : "=r"(a0) : : "memory"); /* ssrdp a0 */
	return a0;
}

/* Exchanges a word of a shadow stack: SSAMOSWAP.D. */
ss_inline uint64_t ss_exchange(unsigned long addr, uint64_t val)
{
	uint64_t old;

	asm volatile(".insn r 0x2f, 3, 0x24, %0, %1, %2"
		     : "=&r"(old)
		     : "r"(addr), "r"(val)
		     : "memory");
	return old;
}

/* Stores to a shadow stack. */
ss_inline void ss_write(unsigned long addr, uint64_t val)
{
	ss_exchange(addr, val);
}

/* Drops the youngest entry: the pointer is an ordinary user CSR. */
ss_inline void ss_pop(void)
{
	asm volatile("csrw 0x011, %0" : : "r"(ss_pointer() + 8) : "memory");
}

/* Makes earlier stores to the shadow stack visible to loads, and earlier loads to stores. */
ss_inline void ss_sync(void)
{
	asm volatile("fence" : : : "memory");
}

/*
 * Switches to the shadow stack whose restore token is at @token. Returns the address of the restore
 * token that is left on the old one. The hardware does not check tokens, software does: a wrong one
 * ends in EBREAK.
 */
ss_inline unsigned long ss_switch(unsigned long token)
{
	unsigned long old = ss_pointer();

	if (ss_exchange(token, 0) != token + 8)
		__builtin_trap();
	ss_exchange(old - 8, old);
	asm volatile("csrw 0x011, %0" : : "r"(token + 8) : "memory");
	return old - 8;
}

/*
 * Enter and leave a function that protects its return address @ra: SSPUSH x1 at its beginning,
 * SSPOPCHK x1 at its end.
 */
#define ss_enter(ra)                    \
	asm volatile("mv	x1, %0\n\t"    \
		     ".word	0xce104073" \
		     :                  \
		     : "r"(ra)          \
		     : "x1", "memory")
#define ss_leave(ra)                    \
	asm volatile("mv	x1, %0\n\t"    \
		     ".word	0xcdc0c073" \
		     :                  \
		     : "r"(ra)          \
		     : "x1", "memory")

/* ---- Other stacks ---- */

/* Leaves for @to, and goes on here when something switches to @from. */
ss_inline void ss_swapcontext(struct ss_context *from, struct ss_context *to)
{
	from->token = ss_switch(to->token);

	register struct ss_context *a0 asm("a0") = from;
	register struct ss_context *a1 asm("a1") = to;

	asm volatile("la	a2, 1f\n\t"
		     "sd	sp, 0(a0)\n\t"
		     "sd	s0, 8(a0)\n\t"
		     "sd	a2, 16(a0)\n\t"
		     "ld	sp, 0(a1)\n\t"
		     "ld	s0, 8(a1)\n\t"
		     "ld	a2, 16(a1)\n\t"
		     "jr	a2\n"
		     "1:"
		     : "+r"(a0), "+r"(a1)
		     :
		     : "ra", "a2", "a3", "a4", "a5", "a6", "a7", "t0", "t1", "t2", "t3", "t4", "t5",
		       "t6", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11",
		       "ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "ft8", "ft9", "ft10",
		       "ft11", "fa0", "fa1", "fa2", "fa3", "fa4", "fa5", "fa6", "fa7", "fs0", "fs1",
		       "fs2", "fs3", "fs4", "fs5", "fs6", "fs7", "fs8", "fs9", "fs10", "fs11",
		       "memory");
}

/* The stack pointer that a function entered without JAL expects, for a stack up to @top. */
#define SS_ENTRY_SP(top) (top)

/*
 * clone3() with a function for the child to call; the child then exits with 0.
 * @args: struct clone_args, with a stack of its own when CLONE_VM is given.
 */
ss_inline long ss_clone3(void *args, unsigned long size, void (*fn)(void *), void *arg)
{
	register void *a0 asm("a0") = args;
	register unsigned long a1 asm("a1") = size;
	register void (*a2)(void *) asm("a2") = fn;
	register void *a3 asm("a3") = arg;
	register long a7 asm("a7") = __NR_clone3;

	asm volatile("ecall\n\t"
		     "bnez	a0, 1f\n\t"
		     "li	s0, 0\n\t"
		     "mv	a0, a3\n\t"
		     "jalr	a2\n\t"
		     "li	a0, 0\n\t"
		     "li	a7, %[exit]\n\t"
		     "ecall\n"
		     "1:"
		     : "+r"(a0)
		     : "r"(a1), "r"(a2), "r"(a3), "r"(a7), [exit] "i"(__NR_exit)
		     : "memory");
	return (long)a0;
}

/* ---- What the kernel builds ---- */

/* Returns the bytes of the shadow stack that goes with an RLIMIT_STACK of @stack bytes. */
ss_inline unsigned long ss_size(unsigned long stack, unsigned long page)
{
	unsigned long size = stack / 2;

	size = size < 2 * SS_GIB ? size : 2 * SS_GIB;
	return ss_pages(size, page);
}

/* Whether disabling keeps the mapping, until the thread ends. */
#define SS_DISABLE_KEEPS 0

/* The answer to enabling where that size is 0 bytes. */
#define SS_NO_SIZE (-ENOMEM)

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
	return addr + 8;
}

/* A signal pushes a restore token; the handler returns to the vDSO unchecked. */
#define SS_SIGNAL_WORDS 1
#define SS_SIGNAL_TOKEN 0 /* index from the handler's pointer */
#define SS_SIGNAL_RESTORER -1 /* index from the handler's pointer; -1: there is none */
#define SS_SIGNAL_CLEARED 1 /* whether return clears the token */

ss_inline uint64_t ss_signal_token(unsigned long addr, unsigned long old)
{
	(void)old;
	return ss_token(addr);
}

/* The record of the signal frame that keeps the shadow stack pointer. */
#define SS_CFI_MAGIC 0x9487

struct ss_cfi_context {
	uint32_t magic;
	uint32_t size;
	uint64_t ssp;
};

/* Whether the signal frame keeps the shadow stack pointer, which the function below returns. */
#define SS_SIGNAL_FRAME 1

ss_inline unsigned long ss_frame_pointer(void *ucontext)
{
	/* The records begin in the last 8 bytes of the floating-point state. */
	mcontext_t *mc = &((ucontext_t *)ucontext)->uc_mcontext;
	char *rec = (char *)&mc->__fpregs + 520;
	struct ss_cfi_context *ctx = (void *)rec;

	while (ctx->magic && ctx->size) {
		if (ctx->magic == SS_CFI_MAGIC)
			return ctx->ssp;
		rec += ctx->size;
		ctx = (void *)rec;
	}
	return 0;
}

/* The errno of mprotect() that would make a shadow stack executable. */
#define SS_MPROTECT_EXEC 0

/* ---- ptrace ---- */

#define SS_REGSET 0x903 /* NT_RISCV_USER_CFI */

struct ss_regset {
	uint64_t state;
	uint64_t ssp;
};

#define SS_CFI_EN (1UL << 3)
#define SS_CFI_PTR (1UL << 5)

ss_inline void ss_regset_set_pointer(struct ss_regset *r, unsigned long ssp)
{
	r->state = SS_CFI_PTR;
	r->ssp = ssp;
}

#define ss_regset_pointer(r) ((r)->ssp)

/* The answer for a task with shadow stacks off. */
#define SS_REGSET_OFF 0

/* Whether odd and kernel pointers are refused. */
#define SS_REGSET_CHECKED 0

/* ---- Faults ---- */

/* Whether a system call that stores to a shadow stack may never return. */
#define SS_STORE_NEVER_RETURNS 0

/* Whether si_addr of SEGV_CPERR is the instruction; 0 otherwise. */
#define SS_CPERR_ADDR_PC 1

#endif
