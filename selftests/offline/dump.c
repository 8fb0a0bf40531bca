// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * dump.c - a program that dumps its own registers, stack and mapped files, as a program on a device
 * would, to be unwound elsewhere. It also prints the true stack, which its functions noted. The
 * output is lines of text, then the bytes of the stack.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define DEPTH 30
#define MAX_STACK (1 << 20)
#define hidden __attribute__((noinline, noclone)) static

static uint64_t truth[DEPTH + 2];
static int noted;
static volatile int sink;
static uint8_t copy[MAX_STACK];
static size_t copied;
static uint64_t copied_from;

static void print_regs(const ucontext_t *uc)
{
#ifdef __x86_64__
	static const int order[] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
				     REG_RBP, REG_RSP, REG_R8,	REG_R9,	 REG_R10, REG_R11,
				     REG_R12, REG_R13, REG_R14, REG_R15 };

	puts("arch 1");
	printf("pc %llx\n", uc->uc_mcontext.gregs[REG_RIP]);
	for (int i = 0; i < 16; i++)
		printf("reg %llx\n", uc->uc_mcontext.gregs[order[i]]);
#else
	puts("arch 2");
	printf("pc %llx\n", (unsigned long long)uc->uc_mcontext.pc);
	for (int i = 0; i < 31; i++)
		printf("reg %llx\n", (unsigned long long)uc->uc_mcontext.regs[i]);
	printf("reg %llx\n", (unsigned long long)uc->uc_mcontext.sp);
#endif
}

/* Prints the mappings of files, and returns the end of the stack. */
static uint64_t print_maps(uint64_t sp)
{
	unsigned long long start, end, offset;
	char line[4096], prot[5], path[4096];
	FILE *in = fopen("/proc/self/maps", "r");
	uint64_t stack_end = 0;

	while (in && fgets(line, sizeof(line), in)) {
		if (sscanf(line, "%llx-%llx %4s %llx %*s %*s %4095s", &start, &end, prot, &offset,
			   path) < 4)
			continue;
		if (sp >= start && sp < end)
			stack_end = end;
		else if (prot[2] == 'x' && strchr(line, '/'))
			printf("map %llx %llx %llx %s\n", start, end, offset, path);
	}
	if (in)
		fclose(in);
	return stack_end;
}

/* Copies the stack, while the frame of this function is the innermost one. */
hidden void dump(void)
{
	static ucontext_t uc;

	truth[noted++] = (uintptr_t)__builtin_return_address(0);
	getcontext(&uc);
#ifdef __x86_64__
	copied_from = uc.uc_mcontext.gregs[REG_RSP];
#else
	copied_from = uc.uc_mcontext.sp;
#endif
	copied = print_maps(copied_from) - copied_from;
	if (copied > MAX_STACK)
		copied = MAX_STACK;
	memcpy(copy, (void *)copied_from, copied);
	print_regs(&uc);
}

hidden int recurse(int n)
{
	int ret = 0;

	truth[DEPTH + 1 - n] = (uintptr_t)__builtin_return_address(0);
	if (n)
		ret = recurse(n - 1);
	else
		dump();
	sink += ret;
	return ret + 1;
}

hidden int compare(const void *a, const void *b)
{
	/* Once is enough. */
	if (!noted)
		recurse(DEPTH);
	return *(const int *)a - *(const int *)b;
}

int main(void)
{
	int a[] = { 3, 1, 2 };

	qsort(a, 3, sizeof(a[0]), compare);
	/* Innermost first: the return address of dump(), then those of recurse(). */
	printf("true %llx\n", (unsigned long long)truth[0]);
	for (int i = DEPTH; i >= 0; i--)
		printf("true %llx\n", (unsigned long long)truth[i + 1]);
	printf("stack %llx %zx\n", (unsigned long long)copied_from, copied);
	fwrite(copy, 1, copied, stdout);
	return 0;
}
