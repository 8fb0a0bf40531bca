/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * readers.h - the debug information of one file, read by several threads.
 *
 * A reader of debug information (dwarf.h) is one thread's. So each thread gets a reader of its own,
 * which shares the bytes of the file and the index of units with the first one, and draws from a
 * budget of its own: an equal part of what is left for all files. A unit is read by one thread only.
 */
#ifndef SHSTK_SYMBOL_READERS_H
#define SHSTK_SYMBOL_READERS_H

#include <stddef.h>
#include <stdint.h>

#include "object_names.h"

struct shstk_account;
struct shstk_dwarf;
struct shstk_readers;
struct shstk_sym;

/**
 * struct shstk_wanted - an address whose names are wanted
 * @addr: the address, in those of the file.
 * @unit: number of the unit that describes it (shstk_dwarf_unit()).
 * @sym: the symbol that covers it, or NULL.
 * @names: the answer; @names.nr is 0 if no reader found one. It lies in the readers' memory.
 */
struct shstk_wanted {
	uint64_t addr;
	size_t unit;
	const struct shstk_sym *sym;
	struct shstk_resolved names;
};

/*
 * Starts up to @threads threads that read what @dwarf reads, for the @nr addresses at @wanted, sorts
 * these, and waits until all was tried. CPU time is drawn from the budget of @account. Returns NULL
 * if nothing was read.
 */
struct shstk_readers *shstk_readers_run(const struct shstk_dwarf *dwarf,
					struct shstk_account *account, struct shstk_wanted *wanted,
					size_t nr, unsigned int threads);
/* Frees the readers and what they read. */
void shstk_readers_destroy(struct shstk_readers *readers);

#endif /* SHSTK_SYMBOL_READERS_H */
