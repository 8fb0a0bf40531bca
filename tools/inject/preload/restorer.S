/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * restorer.S - the code that the handler of fault.c returns to.
 */
	.text

/* Debuggers and unwinders recognize a signal frame by these very instructions. */
	.hidden	start_restorer
	.globl	start_restorer
	.type	start_restorer, @function
	.p2align 4
	nop
start_restorer:
	movq	$15, %rax
	syscall
	.size	start_restorer, . - start_restorer

	.section .note.GNU-stack, "", @progbits
