/* SPDX-License-Identifier: GPL-2.0-or-later */
/* bare-arm64.S - bare.S for arm64: functions without unwind information. */
	.text

/* A frame record that is also the frame pointer: bare_frame(f, x). */
	.globl	bare_frame
	.type	bare_frame, %function
bare_frame:
	stp	x29, x30, [sp, #-32]!
	mov	x29, sp
	str	x19, [sp, #16]
	mov	x19, x0
	mov	x0, x1
	blr	x19
	ldr	x19, [sp, #16]
	ldp	x29, x30, [sp], #32
	ret
	.size	bare_frame, . - bare_frame

/* A frame record above a larger frame: bare_leave(f, x). */
	.globl	bare_leave
	.type	bare_leave, %function
bare_leave:
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
	.size	bare_leave, . - bare_leave

/* A leaf without a frame: bare_leaf(x). */
	.globl	bare_leaf
	.type	bare_leaf, %function
bare_leaf:
	add	x1, x0, #3
	mul	x0, x0, x1
	cbz	x0, 1f
	add	x0, x0, #1
1:	ret
	.size	bare_leaf, . - bare_leaf

/* A frame without a frame pointer: bare_push(f, x). */
	.globl	bare_push
	.type	bare_push, %function
bare_push:
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
	.size	bare_push, . - bare_push

	.section .note.GNU-stack, "", %progbits
