/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * arch.h - user shadow stacks of arm64 (GCS), as the tests in this folder use them
 *
 * See ../x86/arch.h. The assembler of Debian 12 does not know FEAT_GCS: its
 * instructions are written as the system instructions they are encoded as.
 */
#ifndef FACTS_ARCH_H
#define FACTS_ARCH_H

#include "../generic.h"

#define SS_ENABLE (1UL << 0) /* PR_SHADOW_STACK_ENABLE */
#define SS_WRITE (1UL << 1) /* PR_SHADOW_STACK_WRITE */
#define SS_PUSH (1UL << 2) /* PR_SHADOW_STACK_PUSH */

/* Whether map_shadow_stack() knows SS_SET_MARKER. */
#define SS_HAS_MARKER 1

/* The errno of a call that would change a locked feature. */
#define SS_LOCKED EBUSY

/* What a kernel that knows shadow stacks answers on a CPU that does not. */
#define SS_ABSENT (-EINVAL)
#define SS_ABSENT_STATUS (-EINVAL) /* the same for status and lock */

ss_inline long ss_syscall(long nr, unsigned long a, unsigned long b, unsigned long c,
			  unsigned long d, unsigned long e)
{
	register long x8 asm("x8") = nr;
	register unsigned long x0 asm("x0") = a;
	register unsigned long x1 asm("x1") = b;
	register unsigned long x2 asm("x2") = c;
	register unsigned long x3 asm("x3") = d;
	register unsigned long x4 asm("x4") = e;

	asm volatile("svc #0"
		     : "+r"(x0)
		     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
		     : "memory", "cc");
	return x0;
}

/* ---- Control: these return a negative errno or 0; @bits is a set of SS_* ---- */

ss_inline long ss_status(unsigned long *bits)
{
	return ss_prctl(SS_PR_GET, (unsigned long)bits);
}

ss_inline long ss_enable(unsigned long bits)
{
	unsigned long now = 0;
	long ret = ss_status(&now);

	if (!ret)
		ret = ss_prctl(SS_PR_SET, now | bits);
	return ret;
}

ss_inline long ss_disable(unsigned long bits)
{
	unsigned long now = 0;
	long ret = ss_status(&now);

	if (!ret)
		ret = ss_prctl(SS_PR_SET, now & ~bits);
	return ret;
}

ss_inline long ss_lock(unsigned long bits)
{
	return ss_prctl(SS_PR_LOCK, bits);
}

/* ---- Instructions ---- */

/*
 * The shadow stack pointer; 0 when off. CHKFEAT clears the bits of x16 whose
 * feature is on, and GCSPR_EL0 cannot be read when GCS is off.
 */
ss_inline unsigned long ss_pointer(void)
{
	register unsigned long x16 asm("x16") = 1;
	unsigned long ssp;

	asm volatile("hint #40" : "+r"(x16) : : "memory"); /* chkfeat x16 */
	if (x16)
		return 0;
	asm volatile("mrs %0, s3_3_c2_c5_1" : "=r"(ssp) : : "memory");
	return ssp;
}

/* Stores to a shadow stack (SS_WRITE): GCSSTR x1, [x0]. */
ss_inline void ss_write(unsigned long addr, uint64_t val)
{
	register unsigned long x0 asm("x0") = addr;
	register uint64_t x1 asm("x1") = val;

	asm volatile(".inst 0xd91f0c01" : : "r"(x0), "r"(x1) : "memory");
}

/* Pushes a word (SS_PUSH): GCSPUSHM. */
ss_inline void ss_push(uint64_t val)
{
	asm volatile("sys #3, c7, c7, #0, %0" : : "r"(val) : "memory");
}

/* Drops the youngest entry: GCSPOPM. */
ss_inline void ss_pop(void)
{
	uint64_t val;

	asm volatile("sysl %0, #3, c7, c7, #1" : "=r"(val) : : "memory");
}

/*
 * Make earlier stores to the shadow stack visible to loads; and the reverse:
 * GCSB DSYNC.
 */
ss_inline void ss_sync(void)
{
	asm volatile("hint #19" : : : "memory");
}

/*
 * Switch to the shadow stack whose restore token (cap) is at @token, in two
 * steps: GCSSS1 and GCSSS2. The second returns the address of the cap that is
 * left on the old one, whose pointer was @old.
 */
ss_inline void ss_switch_begin(unsigned long token)
{
	asm volatile("sys #3, c7, c7, #2, %0" : : "r"(token) : "memory");
}

ss_inline unsigned long ss_switch_end(unsigned long old)
{
	asm volatile("sysl %0, #3, c7, c7, #3" : "=r"(old) : : "memory");
	return old;
}

ss_inline unsigned long ss_switch(unsigned long token)
{
	ss_switch_begin(token);
	return ss_switch_end(0);
}

/*
 * Enter and leave a function that protects its return address. Every call
 * does here; riscv needs instructions that Debian's compilers do not emit.
 */
#define ss_enter(ra) ((void)(ra))
#define ss_leave(ra) ((void)(ra))

/* ---- Other stacks ---- */

/*
 * Leave for @to, go on here when something switches to @from. No BL and no
 * RET: the shadow stacks hold nothing but the callers' entries.
 */
ss_inline void ss_swapcontext(struct ss_context *from, struct ss_context *to)
{
	register struct ss_context *x0 asm("x0") = from;
	register struct ss_context *x1 asm("x1") = to;

	asm volatile("mov	x2, sp\n\t"
		     "adr	x3, 1f\n\t"
		     "stp	x2, x29, [x0, #0]\n\t"
		     "str	x3, [x0, #16]\n\t"
		     "ldr	x2, [x1, #24]\n\t"
		     "sys	#3, c7, c7, #2, x2\n\t"
		     "sysl	x2, #3, c7, c7, #3\n\t"
		     "str	x2, [x0, #24]\n\t"
		     "ldp	x2, x29, [x1, #0]\n\t"
		     "ldr	x3, [x1, #16]\n\t"
		     "mov	sp, x2\n\t"
		     "br	x3\n"
		     "1:	hint #36" /* bti j */
		     : "+r"(x0), "+r"(x1)
		     :
		     : "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13",
		       "x14", "x15", "x16", "x17", "x19", "x20", "x21", "x22", "x23", "x24", "x25",
		       "x26", "x27", "x28", "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7",
		       "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18",
		       "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29",
		       "v30", "v31", "cc", "memory");
}

/* The stack pointer that a function entered without BL expects, for a stack up to @top. */
#define SS_ENTRY_SP(top) (top)

/*
 * clone3() with a function for the child to call; the child then exits with 0.
 * @args: struct clone_args, with a stack of its own when CLONE_VM is given.
 */
ss_inline long ss_clone3(void *args, unsigned long size, void (*fn)(void *), void *arg)
{
	register void *x0 asm("x0") = args;
	register unsigned long x1 asm("x1") = size;
	register void (*x2)(void *) asm("x2") = fn;
	register void *x3 asm("x3") = arg;
	register long x8 asm("x8") = __NR_clone3;

	asm volatile("svc	#0\n\t"
		     "cbnz	x0, 1f\n\t"
		     "mov	x29, xzr\n\t"
		     "mov	x0, x3\n\t"
		     "blr	x2\n\t"
		     "mov	x0, xzr\n\t"
		     "mov	x8, %[exit]\n\t"
		     "svc	#0\n"
		     "1:"
		     : "+r"(x0)
		     : "r"(x1), "r"(x2), "r"(x3), "r"(x8), [exit] "i"(__NR_exit)
		     : "memory", "cc");
	return (long)x0;
}

/* ---- What the kernel builds ---- */

/* Returns the bytes of the shadow stack that goes with an RLIMIT_STACK of @stack bytes. */
ss_inline unsigned long ss_size(unsigned long stack, unsigned long page)
{
	unsigned long size = stack / 2;

	size = size < 2 * SS_GIB ? size : 2 * SS_GIB;
	return size ? ss_pages(size, page) : page;
}

/* Whether disabling keeps the mapping, until the thread ends. */
#define SS_DISABLE_KEEPS 1

/* The answer to enabling where that size is 0 bytes. */
#define SS_NO_SIZE (0)

/* Returns the bytes of the shadow stack of a thread made by clone3() with .stack_size. */
ss_inline unsigned long ss_thread_size(unsigned long stack, unsigned long page)
{
	return ss_pages(stack / 2, page);
}

/* Words that the kernel puts at the outer end of a stack that it makes: here a zero. */
#define SS_END_WORDS 1

/* Returns the restore token (cap) that belongs at @addr: its page, and 1 for "valid". */
ss_inline uint64_t ss_token(unsigned long addr)
{
	return (addr & ~0xfffUL) | 1;
}

/* Returns the word at the token's place between the two steps (in-progress cap). */
ss_inline uint64_t ss_half_token(unsigned long old)
{
	return old | 5;
}

/*
 * A signal pushes a cap whose low bits are 0, and then the return trampoline
 * in the vDSO, to which the handler returns.
 */
#define SS_SIGNAL_WORDS 2
#define SS_SIGNAL_TOKEN 1 /* index from the handler's pointer */
#define SS_SIGNAL_RESTORER 0 /* index from the handler's pointer; -1: there is none */
#define SS_SIGNAL_CLEARED 1 /* whether return clears the token */

ss_inline uint64_t ss_signal_token(unsigned long addr, unsigned long old)
{
	(void)old;
	return addr & ~0xfffUL;
}

/* struct gcs_context is a record in the reserved part of the signal frame. */
#define SS_GCS_MAGIC 0x47435300

struct ss_gcs_context {
	uint32_t magic;
	uint32_t size;
	uint64_t gcspr;
	uint64_t features_enabled;
	uint64_t reserved;
};

/* Returns that record, or NULL. */
ss_inline struct ss_gcs_context *ss_frame_gcs(void *ucontext)
{
	mcontext_t *mc = &((ucontext_t *)ucontext)->uc_mcontext;
	unsigned char *rec = mc->__reserved;
	unsigned char *end = rec + sizeof(mc->__reserved);

	while (rec + sizeof(struct ss_gcs_context) <= end) {
		struct ss_gcs_context *gcs = (void *)rec;

		if (gcs->magic == SS_GCS_MAGIC)
			return gcs;
		if (!gcs->magic || !gcs->size)
			break;
		rec += gcs->size;
	}
	return 0;
}

/* Whether the signal frame keeps the shadow stack pointer, which the function below returns. */
#define SS_SIGNAL_FRAME 1

ss_inline unsigned long ss_frame_pointer(void *ucontext)
{
	struct ss_gcs_context *gcs = ss_frame_gcs(ucontext);

	return gcs ? gcs->gcspr : 0;
}

/* The errno of mprotect() that would make a shadow stack executable. */
#define SS_MPROTECT_EXEC EINVAL

/* ---- ptrace ---- */

#define SS_REGSET 0x410 /* NT_ARM_GCS */

struct ss_regset {
	uint64_t features_enabled;
	uint64_t features_locked;
	uint64_t gcspr_el0;
};

ss_inline void ss_regset_set_pointer(struct ss_regset *r, unsigned long ssp)
{
	r->gcspr_el0 = ssp;
}

#define ss_regset_pointer(r) ((r)->gcspr_el0)

/* The answer for a task with shadow stacks off. */
#define SS_REGSET_OFF 0

/* Whether odd and kernel pointers are refused. */
#define SS_REGSET_CHECKED 0

/* ---- Faults ---- */

/*
 * A system call that stores to a shadow stack faults for ever, and no signal
 * ends it: for a fault of the kernel itself do_page_fault() does not ask
 * is_invalid_gcs_access(), takes the page for writable and tries again (7.2).
 */
#define SS_STORE_NEVER_RETURNS 1

/* The signal that answers ss_write() without SS_WRITE. */
#define SS_REFUSED_SIGNAL SIGSEGV
#define SS_REFUSED_CODE SEGV_CPERR

/* Whether si_addr of SEGV_CPERR is the instruction; 0 otherwise. */
#define SS_CPERR_ADDR_PC 1

#endif
