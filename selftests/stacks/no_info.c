// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * no_info.c - code whose unwind information is missing or wrong, in ways that lead to false stacks.
 *
 * made:    code that is made at run time, without unwind information: two functions without a
 *          frame record are called by a function with one. Mono makes such code.
 * helper:  a function inside an interpreter that has the unwind information of the code around
 *          it. The word at which the return address lies, by this information, is 0. LuaJIT has
 *          such a function.
 * pointer: the same function, called through a pointer.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef __x86_64__
int main(void)
{
	puts("the code of the test is of x86");
	return 0;
}
#else

#define noinline __attribute__((noinline, noclone))

static volatile int stop;

void made_begin(void);
void made_end(void);
int interpreter(volatile int *stop, int through_pointer);

/* C calls made_begin, which calls made_middle, which calls made_inner. */
__asm__(".pushsection .rodata\n"
	".globl made_begin, made_end\n"
	"made_begin:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	sub $32, %rsp\n"
	"	call made_middle\n"
	"	leave\n"
	"	ret\n"
	"made_middle:\n"
	"	sub $40, %rsp\n"
	"	call made_inner\n"
	"	add $40, %rsp\n"
	"	ret\n"
	"made_inner:\n"
	"	sub $24, %rsp\n"
	"1:	cmpl $0, (%rdi)\n"
	"	je 1b\n"
	"	add $24, %rsp\n"
	"	ret\n"
	"made_end:\n"
	".popsection\n");

/*
 * The unwind information of the interpreter covers the helper, too, where the frame is 8 bytes
 * larger.
 */
__asm__(".text\n"
	".globl interpreter\n"
	".type interpreter, @function\n"
	"interpreter:\n"
	"	.cfi_startproc\n"
	"	.cfi_def_cfa_offset 80\n"
	"	sub $72, %rsp\n"
	"	movq $0, 64(%rsp)\n"
	"	lea helper(%rip), %rax\n"
	"	test %esi, %esi\n"
	"	jne 1f\n"
	"	call helper\n"
	"	jmp 2f\n"
	"1:	call *%rax\n"
	"2:	add $72, %rsp\n"
	"	ret\n"
	"helper:\n"
	"3:	cmpl $0, (%rdi)\n"
	"	je 3b\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size interpreter, . - interpreter\n");

static noinline __attribute__((optimize("no-omit-frame-pointer"))) int middle(const char *what)
{
	size_t size = (const char *)made_end - (const char *)made_begin;
	int (*made)(volatile int *stop);
	void *p;

	if (strcmp(what, "made"))
		return interpreter(&stop, !strcmp(what, "pointer")) + 1;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		 0);
	if (p == MAP_FAILED)
		return 0;
	memcpy(p, (const void *)made_begin, size);
	*(void **)&made = p;
	return made(&stop) + 1;
}

static noinline int outer(const char *what)
{
	return middle(what) + 1;
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	write(1, "ready\n", 6);
	return outer(argv[1]) == 0;
}
#endif
