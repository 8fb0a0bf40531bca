/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * noinfo_functions.S - functions without any unwind information, like hand-written code, and like
 * what compilers make without -fasynchronous-unwind-tables. noinfo.c calls them.
 */
	.text

/* A function with a frame pointer that calls f: noinfo_frame(f, x). */
	.globl	noinfo_frame
	.type	noinfo_frame, @function
noinfo_frame:
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
	.size	noinfo_frame, . - noinfo_frame

/* The same, but it ends with leave: noinfo_leave(f, x). */
	.globl	noinfo_leave
	.type	noinfo_leave, @function
noinfo_leave:
	endbr64
	push	%rbp
	mov	%rsp, %rbp
	sub	$64, %rsp
	mov	%rdi, -8(%rbp)
	mov	%rsi, %rdi
	call	*-8(%rbp)
	leave
	ret
	.size	noinfo_leave, . - noinfo_leave

/* A leaf without a frame: noinfo_leaf(x). */
	.globl	noinfo_leaf
	.type	noinfo_leaf, @function
noinfo_leaf:
	lea	3(%rdi), %rax
	imul	%rdi, %rax
	test	%rax, %rax
	je	1f
	inc	%rax
1:	ret
	.size	noinfo_leaf, . - noinfo_leaf

/* A frame without a frame pointer: noinfo_push(f, x). */
	.globl	noinfo_push
	.type	noinfo_push, @function
noinfo_push:
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
	.size	noinfo_push, . - noinfo_push

	.section .note.GNU-stack, "", @progbits
