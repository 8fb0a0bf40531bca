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

/* Leaf 7 of cpuid: what the CPU has, and what of it programs may use. */
struct leaf7 {
	unsigned int ebx_usable;
	unsigned int ecx;
};

/* <sys/platform/x86.h>: eax to edx of what there is, then of what is usable. */
struct glibc_leaf {
	unsigned int has[4];
	unsigned int usable[4];
};

#define GLIBC_LEAF_7 1
extern const struct glibc_leaf *__x86_get_cpuid_feature_leaf(unsigned int leaf)
	__attribute__((weak));

/* Does the kernel save the registers of AVX? */
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
 * Under a hypervisor each cpuid is an exit from the guest, some microseconds, in every process
 * that starts. glibc has asked already (2.33).
 */
static struct leaf7 find_leaf7(void)
{
	const struct glibc_leaf *leaf;

	if (!__x86_get_cpuid_feature_leaf)
		return ask_cpu();
	leaf = __x86_get_cpuid_feature_leaf(GLIBC_LEAF_7);
	return (struct leaf7){ leaf->usable[1], leaf->has[2] };
}

/* Both the CPU and the kernel have to have them. */
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
