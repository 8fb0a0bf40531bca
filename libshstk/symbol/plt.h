/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* plt.h - names of PLT stubs. */
#ifndef SHSTK_SYMBOL_PLT_H
#define SHSTK_SYMBOL_PLT_H

#include <stdint.h>

#include "elf_file.h"

struct shstk_pool;

/*
 * Returns the name of the PLT stub that covers @addr, such as "puts@plt", and sets @start to the
 * stub's first address. NULL if the address is in no stub.
 */
const char *shstk_plt_name(struct shstk_pool *pool, Elf *elf, uint64_t addr, uint64_t *start);

#endif
