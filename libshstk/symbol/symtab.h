/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* symtab.h - function symbols, sorted. */
#ifndef SHSTK_SYMBOL_SYMTAB_H
#define SHSTK_SYMBOL_SYMTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf_file.h"

/**
 * struct shstk_sym - a function symbol
 * @addr: first address.
 * @size: bytes; estimated where the symbol table does not tell.
 * @name: name as in the table; lives as long as its Elf.
 * @sized: the symbol table told @size.
 * @rank: of several names for one address, the one with the highest rank is shown.
 */
struct shstk_sym {
	uint64_t addr;
	uint64_t size;
	const char *name;
	bool sized;
	uint8_t rank;
};

/**
 * struct shstk_symtab - the function symbols of a file
 * @syms: the symbols, of which there is room for @max.
 * @nr: their number.
 * @max: see @syms.
 * @haskell: the file has, or needs, symbols of GHC's runtime.
 */
struct shstk_symtab {
	struct shstk_sym *syms;
	size_t nr;
	size_t max;
	bool haskell;
};

/*
 * Adds the function symbols of sections of one type (SHT_SYMTAB or SHT_DYNSYM). @copied is what
 * shstk_elf_copied() returns for the file.
 */
int shstk_symtab_add(struct shstk_symtab *tab, Elf *elf, bool copied, uint32_t type,
		     struct shstk_account *account);
/* Sorts the symbols; to be called once, after all were added. */
void shstk_symtab_finish(struct shstk_symtab *tab);
void shstk_symtab_deinit(struct shstk_symtab *tab);
/* Returns the symbol that covers an address, or NULL. */
const struct shstk_sym *shstk_symtab_find(const struct shstk_symtab *tab, uint64_t addr);

#endif
