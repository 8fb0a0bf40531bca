// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * cpu.c - what the running x86 CPU has beyond the baseline.
 */
#ifdef __x86_64__
#include "native.h"

bool native_has_avx2;

static __attribute__((constructor)) void find_avx2(void)
{
	__builtin_cpu_init();
	native_has_avx2 = __builtin_cpu_supports("avx2");
}
#endif
