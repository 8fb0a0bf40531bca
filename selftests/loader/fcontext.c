// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fcontext.c - a library with the three functions of Boost.Context, for programs that switch stacks
 * by their own instructions. It knows nothing of shadow stacks.
 */
#include <stddef.h>

struct transfer {
	void *from;
	void *data;
};

__asm__(".text\n"
	".globl jump_fcontext, ontop_fcontext, fcontext_entry\n"
	".type jump_fcontext, @function\n"
	"jump_fcontext:\n"
	"	push %rbp\n	push %rbx\n	push %r15\n"
	"	push %r14\n	push %r13\n	push %r12\n"
	"	mov %rsp, %rax\n"
	"	mov %rdi, %rsp\n"
	"	pop %r12\n	pop %r13\n	pop %r14\n"
	"	pop %r15\n	pop %rbx\n	pop %rbp\n"
	"	pop %r8\n"
	"	mov %rsi, %rdx\n"
	"	mov %rax, %rdi\n"
	"	jmp *%r8\n"
	".type ontop_fcontext, @function\n"
	"ontop_fcontext:\n"
	"	mov %rdx, %r8\n"
	"	push %rbp\n	push %rbx\n	push %r15\n"
	"	push %r14\n	push %r13\n	push %r12\n"
	"	mov %rsp, %rax\n"
	"	mov %rdi, %rsp\n"
	"	pop %r12\n	pop %r13\n	pop %r14\n"
	"	pop %r15\n	pop %rbx\n	pop %rbp\n"
	"	mov %rax, %rdi\n"
	"	jmp *%r8\n"
	".type fcontext_entry, @function\n"
	"fcontext_entry:\n"
	"	call *%rbx\n"
	"	hlt\n");

void fcontext_entry(void);

__attribute__((visibility("default"))) void *make_fcontext(void *sp, size_t size,
							   void (*func)(struct transfer))
{
	void **frame = (void **)((unsigned long)sp & ~15ul) - 8;

	(void)size;
	frame[4] = (void *)func; /* rbx */
	frame[6] = (void *)fcontext_entry;
	return frame;
}
