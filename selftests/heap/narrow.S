/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * narrow.S - a program of 32-bit code that waits.
 */
	.globl	_start
_start:
	mov	$29, %eax	/* pause() */
	int	$0x80
	jmp	_start

	.section .note.GNU-stack, "", @progbits
