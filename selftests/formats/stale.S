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

/*
 * Fills
 *  words at the stack pointer.
 */
.macro	fill n
	.set	word, 0
	.rept	\n
	mov	%rsi, 8 * word(%rsp)
	.set	word, word + 1
	.endr
.endm

/*
 * The nearest return belongs to the next function, behind a call that does not return; the
 * function's own return comes after three more calls.
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

/* The same for a part of a function, for which the alignment of the stack does not tell. */
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

/* A function that is interrupted in front of such calls. */
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

/* Nothing tells how this function returns, and its frame pointer is the address of words. */
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

/* An outermost function: its code returns by a frame record of zeros. */
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


/*
 * The instructions of clone() in glibc and in musl; they never run. The word behind each label is
 * an address where a thread or its creator may be.
 */
function stale_clone_glibc
	mov	$56, %eax
	syscall
	.globl	stale_clone_glibc_at
stale_clone_glibc_at:
	test	%rax, %rax
	jl	2f
	je	1f
	.globl	stale_clone_glibc_end
stale_clone_glibc_end:
	ret
1:	xor	%ebp, %ebp
	pop	%rax
	pop	%rdi
	call	*%rax
2:	neg	%eax
	ret
	.size	stale_clone_glibc, . - stale_clone_glibc

function stale_clone_musl
	mov	$56, %al
	syscall
	.globl	stale_clone_musl_at
stale_clone_musl_at:
	test	%eax, %eax
	jnz	1f
	.globl	stale_clone_musl_end
stale_clone_musl_end:
	xor	%ebp, %ebp
	pop	%rdi
	call	*%r9
1:	ret
	.size	stale_clone_musl, . - stale_clone_musl

/* A system call whose result is tested, but that does not make threads. */
function stale_no_clone
	mov	$39, %eax
	syscall
	.globl	stale_no_clone_at
stale_no_clone_at:
	test	%rax, %rax
	je	1f
	ret
1:	xor	%eax, %eax
	ret
	.size	stale_no_clone, . - stale_no_clone

	.section .note.GNU-stack, "", @progbits
