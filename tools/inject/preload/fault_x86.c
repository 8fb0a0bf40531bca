// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fault_x86.c - violations on x86. Above its own entries, the shadow stack of a handler holds the
 * SSP of the interrupted code with bit 63 set; sigreturn goes back to that. WRSS changes it, and is
 * enabled just for that.
 */
#include <sys/syscall.h>
#include <ucontext.h>

#include "fault.h"

#define ARCH_SHSTK_ENABLE 0x5001
#define ARCH_SHSTK_DISABLE 0x5002
#define ARCH_SHSTK_STATUS 0x5005
#define ARCH_SHSTK_WRSS 2
#define CP_NEAR_RET 1

bool fault_describe(const void *ucontext, struct violation *v)
{
	const ucontext_t *uc = ucontext;
	const greg_t *r = uc->uc_mcontext.gregs;
	uint64_t ssp = read_ssp(), lo, hi, word;

	v->pc = (uint64_t)r[REG_RIP];
	v->is_return = (r[REG_ERR] & 0x7fff) == CP_NEAR_RET;
	v->to = v->is_return ? load_word((uint64_t)r[REG_RSP]) : 0;
	v->shadow = 0;
	/* The innermost signal frame is that of this handler, a few calls up. */
	for (unsigned int i = 0; i < 64; i++) {
		word = load_word(ssp + i * 8);
		if (!(word >> 63))
			continue;
		v->slot = ssp + i * 8;
		v->ssp = word & ~(1ull << 63);
		if (start_bounds(v->slot, &lo, &hi) && v->ssp < hi)
			v->shadow = load_word(v->ssp);
		return true;
	}
	return false;
}

static long shstk_prctl(long op, long arg)
{
	return sys2(SYS_arch_prctl, op, arg);
}

static bool may_write(void)
{
	uint64_t features = 0;

	shstk_prctl(ARCH_SHSTK_STATUS, (long)&features);
	return features & ARCH_SHSTK_WRSS;
}

bool fault_can_unwind(void)
{
	if (may_write())
		return true;
	if (shstk_prctl(ARCH_SHSTK_ENABLE, ARCH_SHSTK_WRSS))
		return false;
	shstk_prctl(ARCH_SHSTK_DISABLE, ARCH_SHSTK_WRSS);
	return true;
}

void fault_unwind(void *uc, const struct violation *v, uint64_t entry)
{
	bool had = may_write();

	(void)uc;
	if (!had)
		shstk_prctl(ARCH_SHSTK_ENABLE, ARCH_SHSTK_WRSS);
	__asm__ volatile("wrssq %1, %0"
			 : "=m"(*(uint64_t *)(uintptr_t)v->slot)
			 : "r"(entry | 1ull << 63));
	if (!had)
		shstk_prctl(ARCH_SHSTK_DISABLE, ARCH_SHSTK_WRSS);
}

bool fault_jump(void *ucontext, uint64_t to)
{
	ucontext_t *uc = ucontext;
	greg_t *r = uc->uc_mcontext.gregs;
	const unsigned char *p = (const unsigned char *)r[REG_RIP];

	if (*p == 0xf2 || *p == 0xf3)
		p++;
	if (*p != 0xc3 && *p != 0xc2)
		return false;
	r[REG_RSP] += 8 + (*p == 0xc2 ? p[1] | p[2] << 8 : 0);
	r[REG_RIP] = (greg_t)to;
	return true;
}

bool fault_resume(const siginfo_t *info, void *uc)
{
	(void)info;
	(void)uc;
	return false;
}
