// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * whole.c - a program whose code has frame pointers everywhere, without a C library: the kernel's
 * callchains of it reach _start, by frame pointers alone.
 */
#define hidden __attribute__((noinline, noclone)) static

static volatile unsigned int sink;

hidden int spin(int n)
{
	for (int i = 0; i < n; i++)
		sink = sink * 1664525 + 1013904223;
	return (int)sink;
}

hidden int dig(int n)
{
	int ret = n ? dig(n - 1) : spin(1000000);

	return ret + spin(100);
}

__attribute__((used)) static void go(void)
{
	for (int i = 0; i < 150; i++)
		sink += dig(20);
#ifdef __x86_64__
	asm volatile("syscall" : : "a"(231), "D"(0));
#else
	register long nr asm("x8") = 94, status asm("x0") = 0;

	asm volatile("svc 0" : : "r"(nr), "r"(status));
#endif
}

#ifdef __x86_64__
asm(".globl _start; _start: xor %ebp, %ebp; and $-16, %rsp; call go; hlt");
#else
asm(".globl _start; _start: mov x29, #0; mov x30, #0; bl go; udf #0");
#endif
