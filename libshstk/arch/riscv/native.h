/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * native.h - the running machine, riscv64: reads the registers of the calling thread and
 * of a signal context, and copies shadow stacks. Each arch/NAME/ has such a file; the
 * include path selects one.
 */
#ifndef SHSTK_NATIVE_H
#define SHSTK_NATIVE_H

#include <ucontext.h>

#include "../plain.h"
#include "rule.h"
#include "shadow.h"

#define NATIVE_MACHINE machine_riscv
#define native_entry riscv_shadow_entry

/* Instructions are aligned to 1 << NATIVE_CODE_SHIFT bytes. */
#define NATIVE_CODE_SHIFT 1

/* The number of bytes below the stack pointer that signal handlers leave alone. */
#define NATIVE_RED_ZONE 0

/*
 * 1 if every call pushes its return address to the shadow stack. On riscv it is the called
 * function that pushes, if it was compiled to do so and calls other functions. The return
 * addresses of other functions are not on the shadow stack.
 */
#define NATIVE_CALLS_PUSH 0

/* 1 if the return address always lies at the same distance from the CFA. */
#define NATIVE_RA_FIXED 0

/* Returns where the fast loop finds the return address, in bytes from the CFA. */
static inline int64_t native_ra_off(uint64_t rule)
{
	return rule_ra_off(rule);
}

/* Returns the caller's frame pointer; @frame is __builtin_frame_address(0). */
static inline no_sanitize uint64_t native_caller_fp(const uint64_t *frame)
{
	return frame[-2];
}

static inline uint64_t native_thread_pointer(void)
{
	uint64_t tp;

	__asm__("mv %0, tp" : "=r"(tp));
	return tp;
}

/* Reads the callee-saved registers, sp and pc at the place of the call. */
static inline __attribute__((always_inline)) void native_here(struct regs *regs)
{
	register uint64_t *r __asm__("t0") = regs->r;

	__asm__ volatile("sd sp, 16(%0)\n\t"
			 "sd s0, 64(%0)\n\t"
			 "sd s1, 72(%0)\n\t"
			 "sd s2, 144(%0)\n\t"
			 "sd s3, 152(%0)\n\t"
			 "sd s4, 160(%0)\n\t"
			 "sd s5, 168(%0)\n\t"
			 "sd s6, 176(%0)\n\t"
			 "sd s7, 184(%0)\n\t"
			 "sd s8, 192(%0)\n\t"
			 "sd s9, 200(%0)\n\t"
			 "sd s10, 208(%0)\n\t"
			 "sd s11, 216(%0)\n\t"
			 "lla t1, 0f\n"
			 "0:\tsd t1, 256(%0)"
			 :
			 : "r"(r)
			 : "t1", "memory");
	regs->known = machine_riscv.callee_saved | 1ull << REG_PC;
}

static inline void native_context(const void *ucontext, struct regs *regs)
{
	/* The array has the pc in the place of x0. */
	const unsigned long *g = ((const ucontext_t *)ucontext)->uc_mcontext.__gregs;
	unsigned int i;

	regs->r[0] = 0;
	for (i = 1; i < 32; i++)
		regs->r[i] = g[i];
	regs->r[REG_PC] = g[0];
	regs->known = (1ull << 33) - 1;
}

/*
 * ---- The shadow stack ----
 *
 * Sources: the Zicfiss extension, arch/riscv/kernel/usercfi.c,
 * Documentation/arch/riscv/zicfiss.rst. Its instructions are written as numbers, so that
 * the assembler does not have to know them.
 */

extern bool native_has_ssp __attribute__((visibility("hidden")));

/* Returns the shadow stack pointer, or 0 while shadow stacks are off. */
static inline __attribute__((always_inline)) uint64_t native_ssp(void)
{
	uint64_t ssp = 0;

	if (native_has_ssp) /* SSRDP */
		__asm__ volatile(".insn i 0x73, 4, %0, x0, -804" : "=r"(ssp));
	return ssp;
}

/*
 * Tells whether @v, the outermost entry, may be a token of a stack that was left. Here it is not:
 * the token of a stack that was left stays on that stack.
 */
static inline bool native_may_be_left_token(uint64_t v)
{
	(void)v;
	return false;
}

/* Returns where the entries of interrupted code begin: behind the token @v, which holds that. */
static inline uint64_t native_token_ssp(uint64_t v, uint64_t addr)
{
	(void)addr;
	return v;
}

/*
 * Returns where the entries of interrupted code begin, or 0 if the context does not tell.
 * The context's record of control-flow integrity (arch/riscv/include/uapi/asm/sigcontext.h)
 * has the interrupted SSP, which points at the token. The records begin in the last words
 * of the floating-point state.
 */
static inline uint64_t native_context_ssp(const void *ucontext)
{
	const mcontext_t *mc = &((const ucontext_t *)ucontext)->uc_mcontext;
	const uint8_t *p = (const uint8_t *)&mc->__fpregs + 520;
	struct {
		uint32_t magic, size;
		uint64_t ssp;
	} record;
	unsigned int left;

	/* The largest record that may come first is the vector state, up to 8 KiB * 32. */
	for (left = 1 << 19; left; left -= record.size, p += record.size) {
		memcpy(&record, p, 8);
		if (!record.magic || record.size < 8 || record.size > left)
			return 0;
		if (record.magic == 0x9487) {
			memcpy(&record, p, sizeof(record));
			return record.ssp + 8;
		}
	}
	return 0;
}

/* Tells whether the outermost word is a token. Here native_copy_checked() finds all tokens. */
static inline bool native_ends_in_token(uint64_t v, uint64_t addr)
{
	(void)v, (void)addr;
	return false;
}

/* Returns how many words native_copy() may copy at once from @addr: up to the page's end. */
static inline uint64_t native_chunk(uint64_t addr)
{
	return (((addr | 4095) + 1) - addr) / 8;
}

/*
 * Copies @n words, at least 4, within one page. Returns a value other than 0 if there may
 * be a token among them (an address of this page, or the first one behind it), or with
 * @check if a word can't be a return address.
 */
static inline no_sanitize uint64_t native_copy_words(const uint64_t *from, uint64_t *to, uint64_t n,
						     bool check)
{
	uint64_t upper = 0;
	uint64_t page = (uintptr_t)from & ~4095ull;
	uint64_t hit = 0, i;

	for (i = 0; i < n; i++) {
		uint64_t v = *(const volatile uint64_t *)(from + i);

		hit |= v - page <= 4096;
		upper |= v - SHADOW_LEAST;
		to[i] = v;
	}
	return check ? hit | upper >> 55 : hit;
}

static inline no_sanitize uint64_t native_copy(const uint64_t *from, uint64_t *to, uint64_t n)
{
	return native_copy_words(from, to, n, false);
}

/* Copies like native_copy(); also returns another value than 0 if a word is no return address. */
static inline no_sanitize uint64_t native_copy_checked(const uint64_t *from, uint64_t *to,
						       uint64_t n)
{
	return native_copy_words(from, to, n, true);
}

#endif
