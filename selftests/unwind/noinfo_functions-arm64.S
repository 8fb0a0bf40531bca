/* SPDX-License-Identifier: GPL-2.0-or-later */
/* noinfo_functions-arm64.S - noinfo_functions.S for arm64: functions without unwind information. */
	.text

/* A frame record that is also the frame pointer: noinfo_frame(f, x). */
	.globl	noinfo_frame
	.type	noinfo_frame, %function
noinfo_frame:
	stp	x29, x30, [sp, #-32]!
	mov	x29, sp
	str	x19, [sp, #16]
	mov	x19, x0
	mov	x0, x1
	blr	x19
	ldr	x19, [sp, #16]
	ldp	x29, x30, [sp], #32
	ret
	.size	noinfo_frame, . - noinfo_frame

/* A frame record above a larger frame: noinfo_leave(f, x). */
	.globl	noinfo_leave
	.type	noinfo_leave, %function
noinfo_leave:
	sub	sp, sp, #80
	stp	x29, x30, [sp, #64]
	add	x29, sp, #64
	str	x0, [sp, #8]
	mov	x2, x0
	mov	x0, x1
	cbz	x2, 1f
	blr	x2
1:	sub	sp, x29, #64
	ldp	x29, x30, [sp, #64]
	add	sp, sp, #80
	ret
	.size	noinfo_leave, . - noinfo_leave

/* A leaf without a frame: noinfo_leaf(x). */
	.globl	noinfo_leaf
	.type	noinfo_leaf, %function
noinfo_leaf:
	add	x1, x0, #3
	mul	x0, x0, x1
	cbz	x0, 1f
	add	x0, x0, #1
1:	ret
	.size	noinfo_leaf, . - noinfo_leaf

/* A frame without a frame pointer: noinfo_push(f, x). */
	.globl	noinfo_push
	.type	noinfo_push, %function
noinfo_push:
	str	x30, [sp, #-48]!
	stp	x19, x20, [sp, #16]
	mov	x19, x0
	mov	x0, x1
	blr	x19
	mov	x20, x0
	mov	x0, x20
	ldp	x19, x20, [sp, #16]
	ldr	x30, [sp], #48
	ret
	.size	noinfo_push, . - noinfo_push

	.section .note.GNU-stack, "", %progbits
