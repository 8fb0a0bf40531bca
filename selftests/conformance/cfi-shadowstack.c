// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Runs the shadow stack part of the upstream riscv cfitests. That program wants
 * its libc to have switched landing pads and shadow stacks on, which Debian's
 * does not; here the shadow stack is switched on by an inline system call in a
 * function that never returns.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include "kselftest.h"
#include "shadowstack.h"

#define SET_SHADOW_STACK_STATUS 75
#define SHADOW_STACK_ENABLE 1

static inline __attribute__((always_inline)) long enable(void)
{
	register long nr __asm__("a7") = SYS_prctl;
	register long a0 __asm__("a0") = SET_SHADOW_STACK_STATUS;
	register long a1 __asm__("a1") = SHADOW_STACK_ENABLE;
	register long a2 __asm__("a2") = 0;
	register long a3 __asm__("a3") = 0;
	register long a4 __asm__("a4") = 0;

	__asm__ volatile("ecall"
			 : "+r"(a0)
			 : "r"(nr), "r"(a1), "r"(a2), "r"(a3), "r"(a4)
			 : "memory");
	return a0;
}

int main(void)
{
	long ret;

	ksft_print_header();
	ret = enable();
	if (ret)
		ksft_exit_skip("prctl(PR_SET_SHADOW_STACK_STATUS) fails with %ld\n", ret);
	execute_shadow_stack_tests();
	exit(0);
}
