// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * trampoline_x86.c - the trampolines of x86-64.
 *
 * Each trampoline notes that it was passed and jumps to the true return address
 * through its record. It uses no register, no flag and no stack. The jump keeps the
 * processor's return predictor in step, which a second RET would not. It has the
 * prefix NOTRACK for IBT, because there can be no ENDBR64 where it ends.
 *
 * Unwinders that come here find rsp as it is after the return, so the slot lies
 * below it: in the red zone, where no signal frame is put. The slot still holds the
 * marker, unless a signal handler or a callback took the marker back after the
 * unwinder had read it. Every page of trampolines begins with the distance of the
 * records and a word that tells the page from other code. The following expression
 * computes the address of the return address:
 *
 *	breg7 -8, dup, deref		slot, its content
 *	dup, const2s -4096, and		... the start of its page
 *	dup, plus_uconst 8, deref, const8u MAGIC, ne, bra 1f
 *	deref, swap			slot, distance, content
 *	const1s -16, and, plus, skip 2f	slot, record: begins with the address
 *   1:	drop, drop			slot
 *   2:
 *
 * The first byte of a trampoline, a NOP, is there for unwinders that look up the
 * instruction in front of a return address.
 */
#include "trampoline.h"

#if HAVE_TRAMPOLINE && defined(__x86_64__)
struct trampoline shstk_marker_table[TRAMPOLINE_RECORDS] __attribute__((aligned(4096)));

_Static_assert(32 * 4096 == TRAMPOLINE_RECORDS * TRAMPOLINE_BYTES, "pages below");

__asm__("	.pushsection .text.shstk_marker, \"ax\", @progbits\n"
	"	.p2align 12\n"
	"	.globl shstk_marker_code\n"
	"	.hidden shstk_marker_code\n"
	"	.type shstk_marker_code, @function\n"
	"shstk_marker_code:\n"
	"	.cfi_startproc\n"
	"	.cfi_personality 0x1b, shstk_marker_personality\n"
	"	.cfi_def_cfa %rsp, 0\n"
	"	.cfi_escape 0x10, 16, 37, 0x77, 0x78, 0x12, 0x06, 0x12, 0x0b, 0x00, 0xf0, "
	"		0x1a, 0x12, 0x23, 0x08, 0x06, 0x0e, 0x4d, 0x61, 0x72, 0x6b, 0x65, "
	"		0x64, 0x52, 0x41, 0x2e, 0x28, 0x09, 0x00, 0x06, 0x16, 0x09, 0xf0, "
	"		0x1a, 0x22, 0x2f, 0x02, 0x00, 0x13, 0x13\n"
	"	.rept 32\n"
	"	.quad shstk_marker_table - shstk_marker_code\n"
	"	.ascii \"MarkedRA\"\n"
	"	.rept 255\n"
	"1:	nop\n"
	"	movb $0, shstk_marker_table + 8 + (1b - shstk_marker_code)(%rip)\n"
	"	notrack jmp *shstk_marker_table + (1b - shstk_marker_code)(%rip)\n"
	"	.p2align 4, 0xcc\n"
	"	.endr\n"
	"	.endr\n"
	"	.cfi_endproc\n"
	"	.size shstk_marker_code, . - shstk_marker_code\n"

	/*
	 * The personality routine lets the unwinder continue here: see personality.c. The
	 * exception is in rax and the true return address in rdx; rsp is as after the return.
	 * The code resumes the unwinding as if the marked function's caller had called.
	 */
	"	.globl shstk_marker_landing\n"
	"	.hidden shstk_marker_landing\n"
	"	.type shstk_marker_landing, @function\n"
	"shstk_marker_landing:\n"
	"	.cfi_startproc\n"
	"	.cfi_def_cfa %rsp, 0\n"
	"	.cfi_register %rip, %rdx\n"
	"	endbr64\n"
	"	push %rdx\n"
	"	.cfi_def_cfa_offset 8\n"
	"	.cfi_offset %rip, -8\n"
	"	mov %rax, %rdi\n"
	"	mov shstk_marker_resume@gottpoff(%rip), %rcx\n"
	"	mov %fs:(%rcx), %rcx\n"
	"	notrack jmp *%rcx\n"
	"	.cfi_endproc\n"
	"	.size shstk_marker_landing, . - shstk_marker_landing\n"
	"	.popsection\n");

/* A trampoline changes no register, so @regs are right in the middle of one too. */
uint64_t trampoline_meant(uint64_t pc, struct regs *regs)
{
	(void)regs;
	return trampoline_resolve(pc);
}
#endif
