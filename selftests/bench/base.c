/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * base.c - the outermost frame of all chains that are measured.
 *
 * The start-up code above main() has no frame pointers and leaves any value in that register.
 * base_call() makes it zero, which ends every chain of frame records in a way that even a loop
 * without checks understands. This file is built without a frame pointer and without a red zone, so
 * that its assembler code may call and may change that register.
 */
#include "base.h"

void base_call(void (*fn)(void *arg), void *arg)
{
#if defined(__x86_64__)
	__asm__ volatile("xor %%ebp, %%ebp\n\t"
			 "call *%1"
			 : "+D"(arg), "+a"(fn)
			 :
			 : "rbp", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "cc", "memory");
#elif defined(__aarch64__)
	register void *x0 __asm__("x0") = arg;

	__asm__ volatile("mov x29, xzr\n\t"
			 "blr %1"
			 : "+r"(x0)
			 : "r"(fn)
			 : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11",
			   "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x29", "x30", "cc",
			   "memory");
#else
#error "base.c: add a call with a zero frame pointer for this machine"
#endif
}
