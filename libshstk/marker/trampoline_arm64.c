// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * trampoline_arm64.c - the trampolines of arm64.
 *
 * A call leaves its return address in x30, so x30 is free when a function has
 * returned. Each trampoline is a BL, whose return address tells the common code which
 * trampoline it was. The common code saves two registers to use them, notes that the
 * trampoline was passed, and returns to the true address. Everything else stays as it
 * is, and the processor's return predictor sees as many calls as returns.
 *
 * Unwinders that come here have the marker in x30, perhaps signed; or the true address,
 * if the marker was taken back after they had read it. Every page of trampolines begins
 * with the distance of the records and a word that tells the page from other code. The
 * following expression computes the return address:
 *
 *	breg30 0, const8u 2^48-1, and	without authentication code
 *	dup, const2s -4096, and		... and the start of its page
 *	dup, plus_uconst 8, deref, const8u MAGIC, ne, bra 1f
 *	dup, deref, swap, minus, swap	distance - page, marker
 *	const1s -8, and, dup, plus	... twice the trampoline
 *	plus, deref, skip 2f		from its record
 *   1:	drop
 *   2:
 */
#include "trampoline.h"

#if HAVE_TRAMPOLINE && defined(__aarch64__)
struct trampoline shstk_marker_table[TRAMPOLINE_RECORDS] __attribute__((aligned(4096)));

_Static_assert(16 * 4096 == TRAMPOLINE_RECORDS * TRAMPOLINE_BYTES, "pages below");

/* The common code, and the places in it where sp or x30 changes. */
#pragma GCC visibility push(hidden)
extern const uint8_t shstk_marker_common[], shstk_marker_pushed[], shstk_marker_loaded[],
	shstk_marker_popped[], shstk_marker_end[];
#pragma GCC visibility pop

__asm__("	.pushsection .text.shstk_marker, \"ax\", %progbits\n"
	"	.p2align 12\n"
	"	.globl shstk_marker_code\n"
	"	.hidden shstk_marker_code\n"
	"	.type shstk_marker_code, %function\n"
	"shstk_marker_code:\n"
	"	.cfi_startproc\n"
	"	.cfi_personality 0x1b, shstk_marker_personality\n"
	"	.cfi_def_cfa sp, 0\n"
	"	.cfi_escape 0x16, 30, 50, 0x8e, 0x00, 0x0e, 0xff, 0xff, 0xff, 0xff, 0xff, "
	"		0xff, 0x00, 0x00, 0x1a, 0x12, 0x0b, 0x00, 0xf0, 0x1a, 0x12, 0x23, "
	"		0x08, 0x06, 0x0e, 0x4d, 0x61, 0x72, 0x6b, 0x65, 0x64, 0x52, 0x41, "
	"		0x2e, 0x28, 0x0f, 0x00, 0x12, 0x06, 0x16, 0x1c, 0x16, 0x09, 0xf8, "
	"		0x1a, 0x12, 0x22, 0x22, 0x06, 0x2f, 0x01, 0x00, 0x13\n"
	"	.rept 16\n"
	"1:	.quad shstk_marker_table + 2 * (1b - shstk_marker_code) - 1b\n"
	"	.ascii \"MarkedRA\"\n"
	"	.rept 510\n"
	"	bl shstk_marker_common\n"
	"	.inst 0\n" /* udf #0 */
	"	.endr\n"
	"	.endr\n"
	"	.hidden shstk_marker_common, shstk_marker_pushed\n"
	"	.hidden shstk_marker_loaded, shstk_marker_popped, shstk_marker_end\n"
	"	.globl shstk_marker_common, shstk_marker_pushed\n"
	"	.globl shstk_marker_loaded, shstk_marker_popped, shstk_marker_end\n"
	"shstk_marker_common:\n"
	"	stp x16, x17, [sp, #-16]!\n"
	"shstk_marker_pushed:\n"
	"	.cfi_def_cfa_offset 16\n"
	"	and x16, x30, #-4096\n"
	"	ldr x17, [x16]\n"
	"	sub x17, x17, x16\n" /* distance - page */
	"	and x16, x30, #-8\n"
	"	add x16, x17, x16, lsl #1\n"
	"	strb wzr, [x16, #8]\n"
	"	ldr x30, [x16]\n"
	"shstk_marker_loaded:\n"
	"	.cfi_same_value x30\n"
	"	ldp x16, x17, [sp], #16\n"
	"shstk_marker_popped:\n"
	"	.cfi_def_cfa_offset 0\n"
	"	ret\n"
	"shstk_marker_end:\n"
	"	.cfi_endproc\n"
	"	.size shstk_marker_code, . - shstk_marker_code\n"

	/*
	 * The personality routine lets the unwinder continue here: see personality.c. The
	 * exception is in x0, the true return address in x1.
	 */
	"	.globl shstk_marker_landing\n"
	"	.hidden shstk_marker_landing\n"
	"	.type shstk_marker_landing, %function\n"
	"shstk_marker_landing:\n"
	"	.cfi_startproc\n"
	"	.cfi_def_cfa sp, 0\n"
	"	.cfi_register x30, x1\n"
	"	hint #38\n" /* bti jc */
	"	mov x30, x1\n"
	"	.cfi_same_value x30\n"
	"	mrs x2, tpidr_el0\n"
	"	adrp x3, :gottprel:shstk_marker_resume\n"
	"	ldr x3, [x3, #:gottprel_lo12:shstk_marker_resume]\n"
	"	ldr x16, [x2, x3]\n"
	"	br x16\n" /* may end at a bti c */
	"	.cfi_endproc\n"
	"	.size shstk_marker_landing, . - shstk_marker_landing\n"
	"	.popsection\n");

/* No return address leads to the common code, so code that is there was interrupted. */
uint64_t trampoline_meant(uint64_t pc, struct regs *regs)
{
	uint64_t lr;

	if (trampoline_has(pc))
		return trampoline_of(pc)->ra;
	if (likely(!regs || pc - (uintptr_t)shstk_marker_common >=
				    (uintptr_t)shstk_marker_end - (uintptr_t)shstk_marker_common))
		return pc;
	lr = regs->r[30];
	if (pc >= (uintptr_t)shstk_marker_pushed && pc < (uintptr_t)shstk_marker_popped)
		regs->r[31] += 16;
	return pc < (uintptr_t)shstk_marker_loaded ? trampoline_of(lr)->ra : lr;
}
#endif
