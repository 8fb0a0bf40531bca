// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * filter_fuzz.c - filters of system calls as a program installs them, before the kernel has checked them: none is
 * read behind its end, and one that says the same of every call does.
 */
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/inject/agent/filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n = size / sizeof(struct sock_filter);
	struct sock_filter *code = malloc(n * sizeof(*code) + 1);
	int permitted = 0;

	if (!code)
		return 0;
	memcpy(code, data, n * sizeof(*code));
	for (uint32_t call = 0; call < 500; call += 7)
		permitted += filter_permits(code, n, call);
	if (permitted && n && BPF_CLASS(code[0].code) == BPF_RET && permitted != 72)
		abort();
	free(code);
	return 0;
}
