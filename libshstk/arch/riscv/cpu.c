// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * cpu.c - finds out whether the running riscv CPU has SSRDP. SSRDP is a
 * may-be-operation (Zimop), but an illegal instruction on CPUs that do not have such
 * operations. The kernel knows.
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
