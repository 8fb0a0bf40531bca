/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* plt.h - names of PLT stubs. */
#ifndef SHSTK_SYMBOL_PLT_H
#define SHSTK_SYMBOL_PLT_H

#include <stdbool.h>
#include <stdint.h>

#include "elf_file.h"
#include "relocations.h"

struct shstk_account;
struct shstk_pool;

/**
 * struct shstk_plt - what is kept of a file for the names of its stubs; zeroed in the beginning
 * @is_read: @relocations were read.
 * @relocations: the relocations of the file. The file stays open, so their memory is not given back.
 */
struct shstk_plt {
	bool is_read;
	struct shstk_relocations relocations;
};

/*
 * Returns the name of the PLT stub that covers @addr, such as "puts@plt", and sets @start to the
 * stub's first address. @fd is the descriptor of @elf, or -1. NULL if the address is in no stub, or @account lacks memory or time.
 */
const char *shstk_plt_name(struct shstk_plt *plt, struct shstk_pool *pool, Elf *elf, int fd,
			   struct shstk_account *account, uint64_t addr, uint64_t *start);

#endif
