// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * cpu.c - what the running x86 CPU has beyond the baseline. Captures before the
 * constructor has run find AVX2 absent and shadow stacks possible, which is always
 * right.
 */
#ifdef __x86_64__
#include <cpuid.h>
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "native.h"

#define CPUID_7_ECX_SHSTK (1u << 7)
#ifndef ARCH_SHSTK_STATUS
#define ARCH_SHSTK_STATUS 0x5005	/* asm/prctl.h, Linux 6.6 */
#endif

bool native_has_avx2;
bool native_no_shadow;

/* Both the CPU and the kernel have to have them. */
static bool shadow_is_impossible(void)
{
	unsigned int a, b, c, d;
	unsigned long status;
	int saved = errno;
	bool no;

	if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(c & CPUID_7_ECX_SHSTK))
		return true;
	no = syscall(SYS_arch_prctl, ARCH_SHSTK_STATUS, &status) && errno == EINVAL;
	errno = saved;
	return no;
}

static __attribute__((constructor)) void find_features(void)
{
	__builtin_cpu_init();
	native_has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi");
	native_no_shadow = shadow_is_impossible();
}
#endif
