/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* starts.h - where functions start, by the search table of .eh_frame_hdr. */
#ifndef SHSTK_SYMBOL_STARTS_H
#define SHSTK_SYMBOL_STARTS_H

#include <stddef.h>
#include <stdint.h>

#include "elf_file.h"

/* The search table of .eh_frame_hdr, which tells where functions without a name start. */
struct shstk_starts {
	const uint8_t *table;
	size_t nr;
	uint64_t hdr; /* address of .eh_frame_hdr */
	Elf *elf;
	int fd; /* descriptor of @elf, where its bytes are copied; otherwise -1 */
};

/* Reads the search table of @elf. @fd is its descriptor, or -1. */
void shstk_starts_init(struct shstk_starts *starts, Elf *elf, int fd,
		       struct shstk_account *account);
/* Returns the start of the function that covers an address, or 0. */
uint64_t shstk_starts_find(const struct shstk_starts *starts, uint64_t addr);

#endif
