/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ssp.h - reads the shadow stack pointer, which is 0 if shadow stacks are off; for C and C++.
 */
#ifndef PRELOAD_SSP_H
#define PRELOAD_SSP_H

#include <stdint.h>

static inline uint64_t read_ssp(void)
{
	uint64_t v = 0;

#ifdef __x86_64__
	__asm__ volatile("rdsspq %0" : "+r"(v));
#elif defined(__aarch64__)
	register uint64_t x16 __asm__("x16") = 1;

	/* CHKFEAT clears the bit if GCS is enabled; then its pointer is read. */
	__asm__ volatile("hint #40" : "+r"(x16));
	if (!x16)
		__asm__ volatile("mrs %0, s3_3_c2_c5_1" : "=r"(v));
#elif defined(__riscv)
	__asm__ volatile(".insn i 0x73, 4, %0, x0, -804" : "=r"(v)); /* SSRDP */
#endif
	return v;
}

#endif
