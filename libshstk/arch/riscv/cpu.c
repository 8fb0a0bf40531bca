// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * cpu.c - what the running riscv CPU has beyond the baseline. SSRDP is a
 * may-be-operation, but an illegal instruction where there are none of these: the
 * kernel knows.
 */
#ifdef __riscv
#include "native.h"

bool native_has_ssp;

static __attribute__((constructor)) void find_ssp(void)
{
	uint64_t status;

	native_has_ssp = !shstk_status_get(&status);
}
#endif
