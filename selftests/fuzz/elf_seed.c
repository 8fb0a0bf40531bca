// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * elf_seed.c - a small program with symbols, unwind tables, inlined calls and
 * debug information, for elf_fuzz to start from.
 */
volatile int sink;

static inline __attribute__((always_inline)) void inner(int x)
{
	sink += x;
}

__attribute__((noinline)) int outer(int x)
{
	inner(x);
	return sink;
}

void _start(void)
{
	for (;;)
		outer(sink);
}
