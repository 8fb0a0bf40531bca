/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stale.S - functions without unwind information whose locals hold what the caller
 * says, for stale_test.c. Each is NAME(callback, value): it fills its locals with the
 * value and calls back. x86-64.
 */
	.text

.macro	function name
	.balign	16
	.globl	\name
	.type	\name, @function
\name:
.endm

/* Fill \n words at the stack pointer. */
.macro	fill n
	.set	word, 0
	.rept	\n
	mov	%rsi, 8 * word(%rsp)
	.set	word, word + 1
	.endr
.endm

/*
 * The nearest return is that of the next function, behind a call that does not
 * return: the own one comes after three more calls.
 */
function stale_stray
	sub	$72, %rsp
	fill	9
	call	*%rdi
	test	%eax, %eax
	jne	1f
	call	nothing
	call	nothing
	call	nothing
	add	$72, %rsp
	ret
1:	call	abort@plt
	nopw	0(%rax, %rax, 1)
	.size	stale_stray, . - stale_stray

function nothing
	push	%rbx
	pop	%rbx
	ret
	.size	nothing, . - nothing

/* The same, and the alignment of the stack does not tell: a part of a function. */
function stale_part
	sub	$72, %rsp
	fill	9
	call	*%rdi
	test	%eax, %eax
	jne	1f
	call	nothing
	call	nothing
	add	$72, %rsp
	ret
1:	call	abort@plt
	.size	stale_part, . - stale_part
	add	$8, %rsp
	ret

/* Interrupted, in front of such calls. */
function stale_leaf
	sub	$72, %rsp
	fill	9
	int3
	xor	%eax, %eax
	jne	1f
	call	nothing
	call	nothing
	add	$72, %rsp
	ret
1:	call	abort@plt
	.size	stale_leaf, . - stale_leaf
	add	$8, %rsp
	ret

/* Nothing says how it returns, and its frame pointer is the address of words. */
function stale_pointer
	push	%rbp
	push	%rbx
	sub	$72, %rsp
	fill	9
	mov	%rsp, %rbx
	lea	16(%rsp), %rbp
	call	*%rdi
	mov	%rbx, %rsp
	add	$72, %rsp
	pop	%rbx
	pop	%rbp
	ret
	.size	stale_pointer, . - stale_pointer

/* It is the outermost one, by a frame record of zeros that its code returns by. */
function stale_record
	push	%rbp
	push	%rbx
	push	%rbx
	mov	%rsp, %rbx
	push	$0
	push	$0
	mov	%rsp, %rbp
	call	*%rdi
	test	%eax, %eax
	jne	1f
	mov	%rbx, %rsp
	pop	%rbx
	pop	%rbx
	pop	%rbp
	ret
1:	leave
	ret
	.size	stale_record, . - stale_record

	.section .note.GNU-stack, "", @progbits
