// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kinds_seed.c - frames that compilers seldom make, for kernel_rules_fuzz and cache_fuzz to start from: their
 * rules are of kinds that those of the small program are not.
 */
#include <stdint.h>

#include "selftests/kmod/rules_frames.h"

uint64_t *upper_stack;

void _start(void)
{
	for (;;)
		;
}
