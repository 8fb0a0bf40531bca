/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * own_memory.h - a library in memory of the test's own, for what looks for things in its code.
 *
 * The test defines before it includes this: MEMORY, the address, and MEMORY_BYTES.
 */
#ifndef SELFTESTS_LANGUAGE_OWN_MEMORY_H
#define SELFTESTS_LANGUAGE_OWN_MEMORY_H

#include <errno.h>
#include <string.h>

#include "tools/language/language.h"

static uint8_t memory[MEMORY_BYTES];

static int read_memory(void *arg, uint64_t addr, void *buf, size_t size)
{
	(void)arg;
	if (addr < MEMORY || addr - MEMORY + size > sizeof(memory))
		return -EFAULT;
	memcpy(buf, memory + (addr - MEMORY), size);
	return 0;
}

static const struct language_module module = { .fd = -1, .read = read_memory };

#endif
