/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * native.h - the running machine, arm64: reads the registers of the calling thread and of
 * a signal context, and copies shadow stacks. Each arch/NAME/ has such a file; the include
 * path selects one.
 */
#ifndef SHSTK_NATIVE_H
#define SHSTK_NATIVE_H

#include <arm_neon.h>
#include <ucontext.h>

#include "rule.h"
#include "shadow.h"

#define NATIVE_MACHINE machine_arm64
#define native_entry arm64_shadow_entry

/* Instructions are aligned to 1 << NATIVE_CODE_SHIFT bytes. */
#define NATIVE_CODE_SHIFT 2

/* The number of bytes below the stack pointer that signal handlers leave alone. */
#define NATIVE_RED_ZONE 0

/* 1 if every call pushes its return address to the shadow stack. */
#define NATIVE_CALLS_PUSH 1

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
	return frame[0];
}

/*
 * Returns how markers find the frame record (the caller's frame pointer and the return address
 * behind it) of a frame with @rule, or 0 if the frame has no record. The upper half is the
 * distance of the record from sp, or from fp if bit 0 is set; the lower half without bit 0 is the
 * distance of the CFA from the record.
 */
static inline uint64_t native_record_rule(uint64_t rule)
{
	if ((RULE_FORM(rule) & ~(RULE_SP | RULE_FP)) != (RULE_FP_SAVED | RULE_RA_SAVED) ||
	    rule_ra_off(rule) != rule_fp_off(rule) + 8)
		return 0;
	return (uint64_t)(rule_cfa_off(rule) + rule_fp_off(rule)) << 32 |
	       (uint32_t)-rule_fp_off(rule) | (rule & RULE_FP ? 1 : 0);
}

/* Returns the address of the frame record. @how: from native_record_rule(). */
static inline uint64_t native_record(uint64_t how, uint64_t sp, uint64_t fp)
{
	return (how & 1 ? fp : sp) + ((int64_t)how >> 32);
}

/* Returns the CFA of the frame whose frame record is at @record. */
static inline uint64_t native_record_cfa(uint64_t how, uint64_t record)
{
	return record + ((uint32_t)how & ~1u);
}

/* Strips the authentication code by XPACLRI, which does nothing on CPUs that do not have it. */
static inline uint64_t native_strip(uint64_t ra)
{
	register uint64_t lr __asm__("x30") = ra;

	__asm__("hint #7" : "+r"(lr));
	return lr;
}

/* Returns the mask of the bits that XPACLRI clears. */
static inline uint64_t native_pac_mask(void)
{
	uint64_t ones = ~(1ull << 55); /* bit 55 is 0 in a user address */

	return ones & ~native_strip(ones);
}

/* Returns the mask of the bits of a return address that are the address. */
static inline uint64_t native_pc_mask(void)
{
	return ~native_pac_mask();
}

static inline uint64_t native_thread_pointer(void)
{
	uint64_t tp;

	__asm__("mrs %0, tpidr_el0" : "=r"(tp));
	return tp;
}

/* Reads the callee-saved registers, sp and pc at the place of the call. */
static inline __attribute__((always_inline)) void native_here(struct regs *regs)
{
	register uint64_t *r __asm__("x9") = regs->r;

	__asm__ volatile("stp x19, x20, [%0, #152]\n\t"
			 "stp x21, x22, [%0, #168]\n\t"
			 "stp x23, x24, [%0, #184]\n\t"
			 "stp x25, x26, [%0, #200]\n\t"
			 "stp x27, x28, [%0, #216]\n\t"
			 "mov x10, sp\n\t"
			 "str x29, [%0, #232]\n\t"
			 "str x10, [%0, #248]\n\t"
			 "adr x10, 0f\n"
			 "0:\tstr x10, [%0, #256]"
			 :
			 : "r"(r)
			 : "x10", "memory");
	regs->known = machine_arm64.callee_saved | 1ull << REG_PC;
}

static inline void native_context(const void *ucontext, struct regs *regs)
{
	const mcontext_t *mc = &((const ucontext_t *)ucontext)->uc_mcontext;
	unsigned int i;

	for (i = 0; i < 31; i++)
		regs->r[i] = mc->regs[i];
	regs->r[31] = mc->sp;
	regs->r[REG_PC] = mc->pc;
	regs->known = (1ull << 33) - 1;
}

/*
 * ---- The shadow stack ----
 *
 * Sources: Arm ARM D11 (Guarded Control Stack), arch/arm64/mm/gcs.c,
 * Documentation/arch/arm64/gcs.rst.
 */

/* Returns the shadow stack pointer GCSPR_EL0, or 0 while shadow stacks are off. */
static inline __attribute__((always_inline)) uint64_t native_ssp(void)
{
	register uint64_t off __asm__("x16") = 1;
	uint64_t gcspr;

	/* CHKFEAT x16 clears bit 0 if GCS is on; it is a NOP on older CPUs. */
	__asm__ volatile("hint #40" : "+r"(off));
	if (off & 1)
		return 0;
	__asm__ volatile("mrs %0, s3_3_c2_c5_1" : "=r"(gcspr));
	return gcspr;
}

/*
 * Tells whether @v, the outermost entry, may be a token of a stack that was left. Here it is not:
 * the cap of a stack that was left stays on that stack.
 */
static inline bool native_may_be_left_token(uint64_t v)
{
	(void)v;
	return false;
}

/* Returns where the entries of interrupted code begin: behind the cap @v at @addr. */
static inline uint64_t native_token_ssp(uint64_t v, uint64_t addr)
{
	(void)v;
	return addr + 8;
}

/*
 * Returns where the entries of interrupted code begin, or 0 if the context does not tell.
 * The context's GCS record (gcs_context, arch/arm64/include/uapi/asm/sigcontext.h) has the
 * interrupted GCSPR, which points at the cap.
 */
static inline uint64_t native_context_ssp(const void *ucontext)
{
	const mcontext_t *mc = &((const ucontext_t *)ucontext)->uc_mcontext;
	const uint8_t *p = (const uint8_t *)mc->__reserved;
	const uint8_t *end = p + sizeof(mc->__reserved);
	struct {
		uint32_t magic, size;
		uint64_t gcspr;
	} record;

	while ((size_t)(end - p) >= sizeof(record)) {
		memcpy(&record, p, sizeof(record));
		if (record.magic == 0x47435300)
			return record.gcspr + 8;
		if (!record.magic || record.size < 8 || record.size > (size_t)(end - p))
			return 0;
		p += record.size;
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

/**
 * struct native_seen - what is known of the words that were copied
 * @near: the least distances of the lower halves of words from that of the page.
 * @upper: the words minus SHADOW_LEAST, or-ed together.
 */
struct native_seen {
	uint32x4_t near;
	uint64x2_t upper;
};

/*
 * Copies four words. Only the lower halves are compared with @page, the lower half of the page's
 * address, which takes three instructions; where an address is equal by chance, the words are
 * looked at one by one.
 */
static inline __attribute__((always_inline)) no_sanitize void
native_copy4(const uint64_t *from, uint64_t *to, uint32x4_t page, bool check,
	     struct native_seen *seen)
{
	uint64x2_t a = vld1q_u64(from), b = vld1q_u64(from + 2);
	uint32x4_t low = vuzp1q_u32(vreinterpretq_u32_u64(a), vreinterpretq_u32_u64(b));

	vst1q_u64(to, a);
	vst1q_u64(to + 2, b);
	seen->near = vminq_u32(seen->near, vsubq_u32(low, page));
	if (check) {
		const uint64x2_t least = vdupq_n_u64(SHADOW_LEAST);

		seen->upper |= (a - least) | (b - least);
	}
}

/*
 * Copies @n words, at least 4, within one page. Returns a value other than 0 if there may
 * be a cap among them (an address of this page), or with @check if a word can't be a
 * return address. Some of the last four may be copied twice.
 */
static inline __attribute__((always_inline)) no_sanitize uint64_t
native_copy_words(const uint64_t *from, uint64_t *to, uint64_t n, bool check)
{
	const uint32x4_t page = vdupq_n_u32((uint32_t)(uintptr_t)from & ~4095u);
	struct native_seen seen = { vdupq_n_u32(~0u), vdupq_n_u64(0) };
	const uint64_t *last = from + n - 4;
	uint64_t *end = to + n - 4, fours = (n - 1) / 4;

	if (fours & 1) {
		native_copy4(from, to, page, check, &seen);
		from += 4;
		to += 4;
	}
	for (; from < last; from += 8, to += 8) {
		native_copy4(from, to, page, check, &seen);
		native_copy4(from + 4, to + 4, page, check, &seen);
	}
	native_copy4(last, end, page, check, &seen);
	if (vminvq_u32(seen.near) < 4096)
		return 1;
	return check && vmaxvq_u32(vreinterpretq_u32_u64(vshrq_n_u64(seen.upper, 55)));
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
