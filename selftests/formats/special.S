/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * special.S - x86-64 functions whose frames SFrame describes by flexible rules,
 * by flags, or not at all. Never run.
 */
	.text

	/* An outermost frame. */
	.type outermost, @function
outermost:
	.cfi_startproc
	.cfi_undefined rip
	xor %ebp, %ebp
	hlt
	.cfi_endproc

	/* A frame with offsets of four bytes. */
	.type large, @function
large:
	.cfi_startproc
	sub $1000000, %rsp
	.cfi_adjust_cfa_offset 1000000
	nop
	add $1000000, %rsp
	.cfi_adjust_cfa_offset -1000000
	ret
	.cfi_endproc

	/* A function whose caller was interrupted: a signal frame. */
	.type interrupted, @function
interrupted:
	.cfi_startproc
	.cfi_signal_frame
	nop
	nop
	.cfi_endproc

	/* The return address is in a register for a while. */
	.type popped, @function
popped:
	.cfi_startproc
	pop %rdx
	.cfi_def_cfa rsp, 0
	.cfi_register rip, rdx
	nop
	push %rdx
	.cfi_def_cfa rsp, 8
	.cfi_offset rip, -8
	ret
	.cfi_endproc

	/* The caller's frame pointer is in another register for a while. */
	.type moved, @function
moved:
	.cfi_startproc
	mov %rbp, %r11
	.cfi_register rbp, r11
	nop
	mov %r11, %rbp
	.cfi_restore rbp
	ret
	.cfi_endproc

	/* The CFA is computed from neither the stack pointer nor the frame pointer. */
	.type other, @function
other:
	.cfi_startproc
	mov %rsp, %rbx
	.cfi_def_cfa rbx, 8
	nop
	mov %rbx, %rsp
	.cfi_def_cfa rsp, 8
	ret
	.cfi_endproc

	/* An over-aligned frame, as compilers make it for variable sizes on the stack. */
	.type aligned, @function
aligned:
	.cfi_startproc
	lea 8(%rsp), %r10
	.cfi_def_cfa r10, 0
	and $-64, %rsp
	push -8(%r10)
	push %rbp
	mov %rsp, %rbp
	.cfi_escape 0x10, 0x06, 0x02, 0x76, 0x00
	push %r10
	.cfi_escape 0x0f, 0x03, 0x76, 0x78, 0x06
	nop
	mov -8(%rbp), %r10
	.cfi_def_cfa r10, 0
	leave
	.cfi_restore rbp
	lea -8(%r10), %rsp
	.cfi_def_cfa rsp, 8
	ret
	.cfi_endproc

	.section .note.GNU-stack, "", @progbits
