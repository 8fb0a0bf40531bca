/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gonames.h - names by the table that Go programs carry. */
#ifndef SHSTK_SYMBOL_GONAMES_H
#define SHSTK_SYMBOL_GONAMES_H

#include <stdint.h>

#include "elf_file.h"

struct shstk_pool;
struct shstk_resolved;
struct shstk_sym;
struct shstk_symbols_opts;

struct shstk_gonames;

/*
 * Opens the table of a Go program. @fd is the descriptor of @elf, or -1; @elf must stay; names are
 * kept in @pool. Returns NULL if it is no Go program, or memory runs out.
 */
struct shstk_gonames *shstk_gonames_create(struct shstk_pool *pool, Elf *elf, int fd,
					   const struct shstk_symbols_opts *opts,
					   struct shstk_account *account);
void shstk_gonames_destroy(struct shstk_gonames *go);
/* Fills @ret and returns the number of frames, as shstk_dwarf_find() does. */
unsigned int shstk_gonames_find(const struct shstk_gonames *go, uint64_t addr,
				const struct shstk_sym *sym, struct shstk_resolved *ret);

#endif
