// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * elf_fuzz.c - ELF files with their symbols and debug information: every
 * address gets a name, in bounded time.
 */
#include <stdint.h>
#include <stdlib.h>

#include "symbol/symbol.h"

#define BASE 0x10000000ull

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct shstk_symbols_opts opts = { .debug_dirs = "/nonexistent" };
	struct shstk_symmap_info info = {
		.start = BASE,
		.end = BASE + 0x10000,
		.path = "fuzz",
		.image = data,
		.image_size = size,
	};
	const struct shstk_symbol *symbol;
	struct shstk_symbols *symbols;
	struct shstk_symproc *proc;
	uint64_t at;

	if (!size)
		return 0;
	if (shstk_symbols_create(&opts, &symbols) || shstk_symproc_create(symbols, 0, &proc) ||
	    shstk_symproc_add(proc, &info))
		abort();
	/* The code of elf_seed is at 0x1000. */
	for (at = 0; at < 0x1100; at += at < 0x1000 ? 512 : 7) {
		symbol = shstk_symproc_lookup(proc, BASE + at, at & 1);
		if (!symbol->nr || !symbol->frames[0].function)
			abort();
	}
	shstk_symbols_destroy(symbols);
	return 0;
}
