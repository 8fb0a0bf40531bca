/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * generic.h - user shadow stacks: what is the same on every architecture
 *
 * Included by ARCH/arch.h, which supplies the rest. To add an architecture,
 * give it a folder with an arch.h that has every name of x86/arch.h, and a
 * control.h with the answers to wrong calls.
 *
 * Everything is inline: the frame that turns shadow stacks on must not return,
 * for its caller's return address was never pushed.
 */
#ifndef FACTS_GENERIC_H
#define FACTS_GENERIC_H

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <asm/unistd.h>

#define ss_inline static inline __attribute__((__always_inline__))

/* Operations of prctl(); linux/prctl.h has them since 6.13. */
#define SS_PR_GET 74 /* PR_GET_SHADOW_STACK_STATUS */
#define SS_PR_SET 75 /* PR_SET_SHADOW_STACK_STATUS */
#define SS_PR_LOCK 76 /* PR_LOCK_SHADOW_STACK_STATUS */

/* The number and flags of map_shadow_stack(). */
#define SS_NR_MAP 453
#define SS_SET_TOKEN (1UL << 0) /* SHADOW_STACK_SET_TOKEN */
#define SS_SET_MARKER (1UL << 1) /* SHADOW_STACK_SET_MARKER */

#define SS_GIB (1UL << 30)

/* Makes a system call. Returns its result, or a negative errno. arch.h supplies it. */
ss_inline long ss_syscall(long nr, unsigned long a, unsigned long b, unsigned long c,
			  unsigned long d, unsigned long e);

ss_inline long ss_prctl(int option, unsigned long arg)
{
	return ss_syscall(__NR_prctl, option, arg, 0, 0, 0);
}

ss_inline long ss_map(unsigned long addr, unsigned long size, unsigned long flags)
{
	return ss_syscall(SS_NR_MAP, addr, size, flags, 0, 0);
}

/*
 * One of two contexts that hand over to each other by ss_swapcontext(), whose
 * assembly knows this layout.
 */
struct ss_context {
	unsigned long sp; /* ordinary stack pointer */
	unsigned long fp; /* frame pointer */
	unsigned long pc; /* where to go on */
	unsigned long token; /* restore token on the shadow stack */
};

/* Returns @size rounded up to whole pages. */
ss_inline unsigned long ss_pages(unsigned long size, unsigned long page)
{
	return (size + page - 1) & ~(page - 1);
}

#endif
