/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bare.S - functions without any unwind information, like hand-written code, and like what
 * compilers make without -fasynchronous-unwind-tables. noinfo.c calls them.
 */
	.text

/* A function with a frame pointer that calls f: bare_frame(f, x). */
	.globl	bare_frame
	.type	bare_frame, @function
bare_frame:
	push	%rbp
	mov	%rsp, %rbp
	push	%rbx
	sub	$24, %rsp
	mov	%rdi, %rbx
	mov	%rsi, %rdi
	call	*%rbx
	add	$24, %rsp
	pop	%rbx
	pop	%rbp
	ret
	.size	bare_frame, . - bare_frame

/* The same, but it ends with leave: bare_leave(f, x). */
	.globl	bare_leave
	.type	bare_leave, @function
bare_leave:
	endbr64
	push	%rbp
	mov	%rsp, %rbp
	sub	$64, %rsp
	mov	%rdi, -8(%rbp)
	mov	%rsi, %rdi
	call	*-8(%rbp)
	leave
	ret
	.size	bare_leave, . - bare_leave

/* A leaf without a frame: bare_leaf(x). */
	.globl	bare_leaf
	.type	bare_leaf, @function
bare_leaf:
	lea	3(%rdi), %rax
	imul	%rdi, %rax
	test	%rax, %rax
	je	1f
	inc	%rax
1:	ret
	.size	bare_leaf, . - bare_leaf

/* A frame without a frame pointer: bare_push(f, x). */
	.globl	bare_push
	.type	bare_push, @function
bare_push:
	push	%r12
	push	%rbx
	sub	$40, %rsp
	mov	%rdi, %r12
	mov	%rsi, %rdi
	call	*%r12
	mov	%rax, %rbx
	mov	%rbx, %rax
	add	$40, %rsp
	pop	%rbx
	pop	%r12
	ret
	.size	bare_push, . - bare_push

	.section .note.GNU-stack, "", @progbits
