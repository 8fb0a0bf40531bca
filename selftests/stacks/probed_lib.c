// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * probed_lib.c - functions of a library for probed.c, whose first instruction the kernel does not
 * execute itself, but steps.
 */
#ifdef __aarch64__
#define TIMES(n) "smull x0, w0, w0"
#else
#define TIMES(n) "imul $" #n ", %edi, %eax"
#endif

#define FUNCTION(name, n)                                                           \
	__asm__(".text\n.globl " #name "\n.type " #name ", %function\n" #name ":\n" \
		".cfi_startproc\n" TIMES(n) "\nret\n.cfi_endproc\n.size " #name ", .-" #name)

#if defined(__x86_64__) || defined(__aarch64__)
FUNCTION(times_five, 5);
FUNCTION(times_seven, 7);
#endif
