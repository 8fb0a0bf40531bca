/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jump.S - the functions that move the stack pointer, written so that the shadow stack pointer
 * moves with it.
 *
 * Layouts are those of glibc (musl has the same without the pointer guard). So a jmp_buf or
 * ucontext_t that is filled here can be used by the C library, and the other way round.
 */
#include "start.h"

	.text

	.macro fn name
	.globl	\name
	.type	\name, @function
	.p2align 4
\name:
	.cfi_startproc
	.endm

	.macro hidden_fn name
	.hidden	\name
	fn \name
	.endm

	.macro end_fn name
	.cfi_endproc
	.size	\name, . - \name
	.endm

	/* Applies glibc's pointer guard. */
	.macro mangle reg
	cmpb	$0, start_is_glibc(%rip)
	je	77f
	xorq	%fs:0x30, \reg
	rolq	$0x11, \reg
77:
	.endm

	.macro demangle reg
	cmpb	$0, start_is_glibc(%rip)
	je	77f
	rorq	$0x11, \reg
	xorq	%fs:0x30, \reg
77:
	.endm

	/*
	 * Carries out the struct pivot in rax, rdx: switches by the token and leaves one on the old
	 * shadow stack, then pops up to the target. Clobbers rcx.
	 */
	.macro do_pivot
	testq	%rax, %rax
	jz	71f
	rstorssp (%rax)
	saveprevssp
71:	testq	%rdx, %rdx
	jz	73f
	xorl	%ecx, %ecx
	rdsspq	%rcx
	testq	%rcx, %rcx
	jz	73f
	subq	%rcx, %rdx
	jbe	73f
	shrq	$3, %rdx
72:	movl	$255, %ecx
	cmpq	%rcx, %rdx
	cmovbq	%rdx, %rcx
	incsspq	%rcx
	subq	%rcx, %rdx
	jnz	72b
73:
	.endm

/* ---- setjmp family ---- */

	fn _setjmp
	xorl	%esi, %esi
	jmp	start_sigsetjmp
	end_fn _setjmp

/* glibc's function saves the mask, musl's does not. */
	fn setjmp
	movzbl	start_is_glibc(%rip), %esi
	jmp	start_sigsetjmp
	end_fn setjmp

	fn __sigsetjmp
	jmp	start_sigsetjmp
	end_fn __sigsetjmp

	fn sigsetjmp
	jmp	start_sigsetjmp
	end_fn sigsetjmp

	hidden_fn start_sigsetjmp
	movq	%rbx, (%rdi)
	movq	%rbp, %rax
	mangle	%rax
	movq	%rax, 8(%rdi)
	movq	%r12, 16(%rdi)
	movq	%r13, 24(%rdi)
	movq	%r14, 32(%rdi)
	movq	%r15, 40(%rdi)
	leaq	8(%rsp), %rax
	mangle	%rax
	movq	%rax, 48(%rdi)
	movq	(%rsp), %rax
	mangle	%rax
	movq	%rax, 56(%rdi)
	/* The SSP as it is after this function has returned; 0 if there is none. */
	xorl	%eax, %eax
	rdsspq	%rax
	leaq	8(%rax), %rcx
	testq	%rax, %rax
	cmovnzq	%rcx, %rax
	movq	%rax, JMP_SSP(%rdi)
	xorl	%eax, %eax
	testl	%esi, %esi
	setnz	%al
	movl	%eax, JMP_SAVED(%rdi)
	jz	1f
	leaq	JMP_MASK(%rdi), %rdx
	xorl	%esi, %esi
	xorl	%edi, %edi
	movl	$8, %r10d
	movl	$14, %eax		/* rt_sigprocmask */
	syscall
1:	xorl	%eax, %eax
	ret
	end_fn start_sigsetjmp

/* ---- longjmp family: the C library's functions, if their last step is patched to be ours ---- */

	.macro longjmp_name name
	fn \name
	cmpb	$0, start_jumps_patched(%rip)
	je	start_longjmp_masked
	jmp	*start_real_longjmp(%rip)
	end_fn \name
	.endm

	longjmp_name longjmp
	longjmp_name _longjmp
	longjmp_name siglongjmp
	longjmp_name __longjmp_chk

	.type	start_longjmp_masked, @function
start_longjmp_masked:
	.cfi_startproc
	cmpl	$0, JMP_SAVED(%rdi)
	je	start_longjmp
	movq	%rdi, %r8
	movl	%esi, %r9d
	leaq	JMP_MASK(%rdi), %rsi
	movl	$2, %edi		/* SIG_SETMASK */
	xorl	%edx, %edx
	movl	$8, %r10d
	movl	$14, %eax
	syscall
	movq	%r8, %rdi
	movl	%r9d, %esi
	jmp	start_longjmp
	.cfi_endproc
	.size	start_longjmp_masked, . - start_longjmp_masked

	hidden_fn start_longjmp
	movl	%esi, %r12d
	testl	%esi, %esi
	jnz	1f
	incl	%r12d
1:	movq	%rdi, %rbx
	movq	JMP_SSP(%rdi), %rdi
	andq	$-16, %rsp
	call	start_pivot
	do_pivot
	movl	%r12d, %eax
	movq	%rbx, %rdi
	movq	48(%rdi), %r8
	demangle %r8
	movq	8(%rdi), %rbp
	demangle %rbp
	movq	56(%rdi), %rdx
	demangle %rdx
	movq	(%rdi), %rbx
	movq	16(%rdi), %r12
	movq	24(%rdi), %r13
	movq	32(%rdi), %r14
	movq	40(%rdi), %r15
	movq	%r8, %rsp
	jmp	*%rdx
	end_fn start_longjmp

/* ---- ucontext ---- */

	/* Fills the ucontext_t at rdi with the caller's state. Clobbers rax, rcx. */
	.macro save_context
	movq	%rbx, UC_RBX(%rdi)
	movq	%rbp, UC_RBP(%rdi)
	movq	%r12, UC_R12(%rdi)
	movq	%r13, UC_R13(%rdi)
	movq	%r14, UC_R14(%rdi)
	movq	%r15, UC_R15(%rdi)
	movq	%rdi, UC_RDI(%rdi)
	movq	%rsi, UC_RSI(%rdi)
	movq	%rdx, UC_RDX(%rdi)
	movq	%rcx, UC_RCX(%rdi)
	movq	%r8, UC_R8(%rdi)
	movq	%r9, UC_R9(%rdi)
	movq	(%rsp), %rcx
	movq	%rcx, UC_RIP(%rdi)
	leaq	8(%rsp), %rcx
	movq	%rcx, UC_RSP(%rdi)
	leaq	UC_FPMEM(%rdi), %rcx
	movq	%rcx, UC_FPREGS(%rdi)
	fnstenv	(%rcx)
	fldenv	(%rcx)
	stmxcsr	24(%rcx)
	xorl	%eax, %eax
	rdsspq	%rax
	leaq	8(%rax), %rcx
	testq	%rax, %rax
	cmovnzq	%rcx, %rax
	movabsq	$UC_MAGIC, %rcx
	movq	%rcx, UC_SPARE(%rdi)
	movq	%rax, UC_SPARE+8(%rdi)
	xorq	%rcx, %rax
	movq	%rax, UC_SPARE+16(%rdi)
	.endm

	fn getcontext
	save_context
	xorl	%esi, %esi
	leaq	UC_SIGMASK(%rdi), %rdx
	xorl	%edi, %edi
	movl	$8, %r10d
	movl	$14, %eax
	syscall
	xorl	%eax, %eax
	ret
	end_fn getcontext

	fn swapcontext
	save_context
	leaq	UC_SIGMASK(%rdi), %rdx
	movq	%rsi, %rbx
	leaq	UC_SIGMASK(%rsi), %rsi
	jmp	.Lswitch
	end_fn swapcontext

	fn setcontext
	xorl	%edx, %edx
	leaq	UC_SIGMASK(%rdi), %rsi
	movq	%rdi, %rbx
	jmp	.Lswitch
	end_fn setcontext

	/* Switches to the context at rbx with the mask at rsi; saves the current mask at rdx. */
	.type	.Lswitch, @function
.Lswitch:
	.cfi_startproc
	movl	$2, %edi
	movl	$8, %r10d
	movl	$14, %eax
	syscall
	movq	%rbx, %rdi
	andq	$-16, %rsp
	call	start_context_pivot
	do_pivot
	movq	UC_FPREGS(%rbx), %rcx
	fldenv	(%rcx)
	ldmxcsr	24(%rcx)
	movq	%rbx, %rdx
	movq	UC_RSP(%rdx), %rsp
	movq	UC_RBX(%rdx), %rbx
	movq	UC_RBP(%rdx), %rbp
	movq	UC_R12(%rdx), %r12
	movq	UC_R13(%rdx), %r13
	movq	UC_R14(%rdx), %r14
	movq	UC_R15(%rdx), %r15
	movq	UC_RIP(%rdx), %r11
	movq	UC_RDI(%rdx), %rdi
	movq	UC_RSI(%rdx), %rsi
	movq	UC_RCX(%rdx), %rcx
	movq	UC_R8(%rdx), %r8
	movq	UC_R9(%rdx), %r9
	movq	UC_RDX(%rdx), %rdx
	xorl	%eax, %eax
	jmp	*%r11
	.cfi_endproc
	.size	.Lswitch, . - .Lswitch

/* Begins a context of makecontext(): r12 is its function, rbx its link. */
	.hidden	start_context_entry
	.globl	start_context_entry
	.type	start_context_entry, @function
start_context_entry:
	.cfi_startproc
	.cfi_undefined rip
	call	*%r12
	andq	$-16, %rsp
	call	start_context_finished
	testq	%rbx, %rbx
	jz	1f
	movq	%rbx, %rdi
	/*
	 * setcontext() is not called but jumped to: the entry of a call would stay on the shadow
	 * stack below the token, and be the outermost frame of the next context there. setcontext()
	 * does not come back: it could only fail for a bad signal mask.
	 */
	leaq	1f(%rip), %rax
	pushq	%rax
	jmp	setcontext
1:	xorl	%edi, %edi
	call	exit@PLT
	hlt
	.cfi_endproc
	.size	start_context_entry, . - start_context_entry

/* ---- Boost.Context ---- */

	/*
	 * Saves the caller's state in a frame on its stack and sets rax to that frame. Clobbers
	 * rcx.
	 */
	.macro save_fcontext
	leaq	-FC_SIZE(%rsp), %rax
	stmxcsr	(%rax)
	fnstcw	4(%rax)
	xorl	%ecx, %ecx
	rdsspq	%rcx
	movq	%rcx, FC_SSP(%rax)
	movq	%r12, 0x10(%rax)
	movq	%r13, 0x18(%rax)
	movq	%r14, 0x20(%rax)
	movq	%r15, 0x28(%rax)
	movq	%rbx, 0x30(%rax)
	movq	%rbp, 0x38(%rax)
	.endm

	/*
	 * Goes to the frame at rdi: switches registers, stack and shadow stack. rsp points at the
	 * return address then, and r9 is FC_FRESH or 0. Clobbers rcx, r8.
	 */
	.macro load_fcontext
	movq	%rdi, %rsp
	ldmxcsr	(%rsp)
	fldcw	4(%rsp)
	movq	FC_SSP(%rsp), %r8
	movq	0x10(%rsp), %r12
	movq	0x18(%rsp), %r13
	movq	0x20(%rsp), %r14
	movq	0x28(%rsp), %r15
	movq	0x30(%rsp), %rbx
	movq	0x38(%rsp), %rbp
	leaq	FC_SIZE(%rsp), %rsp
	movl	%r8d, %r9d
	andl	$FC_FRESH, %r9d
	andq	$-8, %r8
	jz	75f
	xorl	%ecx, %ecx
	rdsspq	%rcx
	testq	%rcx, %rcx
	jz	75f
	rstorssp -8(%r8)
	saveprevssp
75:
	.endm

/* struct { void *from; void *data; } jump_fcontext(void *to, void *data) */
	fn jump_fcontext
	save_fcontext
	movq	%rsi, %rdx
	load_fcontext
	movq	%rax, %rdi
	testl	%r9d, %r9d
	jnz	1f
	ret
1:	popq	%r8
	jmp	*%r8
	end_fn jump_fcontext

/* Does what jump_fcontext() does, but calls @fn(from, data) first on the new stack. */
	fn ontop_fcontext
	movq	%rdx, %r10
	save_fcontext
	load_fcontext
	movq	%rax, %rdi
	testl	%r9d, %r9d
	jnz	1f
	jmp	*%r10
1:	leaq	8(%rsp), %rsp
	andq	$-16, %rsp
	call	*%r10
	movq	%rax, %rdi
	movq	%rdx, %rsi
	jmp	start_fcontext_entry
	end_fn ontop_fcontext

/* Begins a context of make_fcontext(): rbx is its function. */
	.hidden	start_fcontext_entry
	.globl	start_fcontext_entry
	.type	start_fcontext_entry, @function
start_fcontext_entry:
	.cfi_startproc
	.cfi_undefined rip
	andq	$-16, %rsp
	call	*%rbx
	xorl	%edi, %edi
	call	_exit@PLT
	hlt
	.cfi_endproc
	.size	start_fcontext_entry, . - start_fcontext_entry

/* ---- vfork ---- */

	/*
	 * The child runs on the parent's shadow stack and returns first. Its calls then overwrite
	 * the entry by which the parent would return. So neither returns: both drop the entry and
	 * jump.
	 */
	fn vfork
	popq	%rdi
	movl	$58, %eax
	syscall
	cmpq	$-4095, %rax
	jae	2f
	xorl	%ecx, %ecx
	rdsspq	%rcx
	testq	%rcx, %rcx
	jz	1f
	movl	$1, %ecx
	incsspq	%rcx
1:	jmp	*%rdi
2:	pushq	%rdi
	negl	%eax
	movl	%eax, %edi
	jmp	start_fail
	end_fn vfork

	.globl	__vfork
	.set	__vfork, vfork

	.section .note.GNU-stack, "", @progbits
