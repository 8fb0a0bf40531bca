// SPDX-License-Identifier: GPL-2.0-only
/*
 * arch_x86.c - the data that the functions in arch_x86.h use. It is filled in once, when the module
 * is loaded.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cache.h>
#include <linux/printk.h>

#include "arch.h"
#include "resolve.h"

struct fpu *__percpu *ushstk_fpregs_owner __ro_after_init;
u16 ushstk_xstate_size[XFEATURE_CET_USER + 1] __ro_after_init;
bool ushstk_xstate_aligned[XFEATURE_CET_USER + 1] __ro_after_init;

static unsigned long no_lookup(const char *name)
{
	return 0;
}

DEFINE_STATIC_CALL(ushstk_lookup, no_lookup);

int __init ushstk_arch_init(void)
{
	u32 eax, ebx, ecx, edx;
	void *lookup;
	int i;

	if (!cpu_feature_enabled(X86_FEATURE_USER_SHSTK)) {
		pr_err("this CPU or kernel has no user shadow stacks\n");
		return -ENODEV;
	}

	for (i = 2; i <= XFEATURE_CET_USER; i++) {
		cpuid_count(0xd, i, &eax, &ebx, &ecx, &edx);
		ushstk_xstate_size[i] = eax;
		ushstk_xstate_aligned[i] = ecx & BIT(1);
	}

	lookup = ushstk_resolve_text("kallsyms_lookup_name");
	if (lookup) {
		static_call_update(ushstk_lookup, lookup);
		ushstk_fpregs_owner =
			(struct fpu * __percpu *)static_call(ushstk_lookup)("fpu_fpregs_owner_ctx");
	}
	if (!ushstk_fpregs_owner) {
		pr_err("fpu_fpregs_owner_ctx: not found: cannot tell whose registers a CPU holds\n");
		return -EOPNOTSUPP;
	}
	return 0;
}
