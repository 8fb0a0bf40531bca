// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * cpu.c - finds out what the running x86 CPU has beyond the baseline. Captures that
 * come before the constructor take AVX2 as absent and shadow stacks as possible,
 * which is always safe.
 */
#ifdef __x86_64__
#include <cpuid.h>
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "native.h"

#define CPUID_7_EBX_BMI1 (1u << 3)
#define CPUID_7_EBX_AVX2 (1u << 5)
#define CPUID_7_ECX_SHSTK (1u << 7)
#define CPUID_1_ECX_OSXSAVE (1u << 27)
#define XCR0_SSE_AVX 6u
#ifndef ARCH_SHSTK_STATUS
#define ARCH_SHSTK_STATUS 0x5005 /* asm/prctl.h, Linux 6.6 */
#endif

bool native_has_avx2;
bool native_no_shadow;

/* Leaf 7 of cpuid. */
struct leaf7 {
	unsigned int ebx_usable; /* features of ebx that programs may use */
	unsigned int ecx; /* features of ecx that the CPU has */
};

/* A leaf of cpuid in glibc, from <sys/platform/x86.h>; the elements are eax, ebx, ecx, edx. */
struct glibc_leaf {
	unsigned int has[4];
	unsigned int usable[4];
};

#define GLIBC_LEAF_7 1
extern const struct glibc_leaf *__x86_get_cpuid_feature_leaf(unsigned int leaf)
	__attribute__((weak));

/* Tells whether the kernel saves the AVX registers. */
static bool avx_is_saved(void)
{
	unsigned int a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & CPUID_1_ECX_OSXSAVE))
		return false;
	__asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
	return (a & XCR0_SSE_AVX) == XCR0_SSE_AVX;
}

static struct leaf7 ask_cpu(void)
{
	struct leaf7 leaf = { 0, 0 };
	unsigned int a, d;

	if (!__get_cpuid_count(7, 0, &a, &leaf.ebx_usable, &leaf.ecx, &d))
		return (struct leaf7){ 0, 0 };
	if (!avx_is_saved())
		leaf.ebx_usable &= ~CPUID_7_EBX_AVX2;
	return leaf;
}

/*
 * Returns leaf 7, from glibc if it has one (since 2.33). Under a hypervisor each cpuid instruction
 * exits from the guest and takes some microseconds, in every process that starts.
 */
static struct leaf7 find_leaf7(void)
{
	const struct glibc_leaf *leaf;

	if (!__x86_get_cpuid_feature_leaf)
		return ask_cpu();
	leaf = __x86_get_cpuid_feature_leaf(GLIBC_LEAF_7);
	return (struct leaf7){ leaf->usable[1], leaf->has[2] };
}

/* Tells whether the CPU or the kernel does not have shadow stacks. */
static bool shadow_is_impossible(const struct leaf7 *leaf)
{
	unsigned long status;
	int saved = errno;
	bool no;

	if (!(leaf->ecx & CPUID_7_ECX_SHSTK))
		return true;
	no = syscall(SYS_arch_prctl, ARCH_SHSTK_STATUS, &status) && errno == EINVAL;
	errno = saved;
	return no;
}

static __attribute__((constructor)) void find_features(void)
{
	const unsigned int wanted = CPUID_7_EBX_AVX2 | CPUID_7_EBX_BMI1;
	struct leaf7 leaf = find_leaf7();

	native_has_avx2 = (leaf.ebx_usable & wanted) == wanted;
	native_no_shadow = shadow_is_impossible(&leaf);
}
#endif
