/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* relocations.h - reads tables of relocations in ELF files that anybody may have made. */
#ifndef SHSTK_SYMBOL_RELOCATIONS_H
#define SHSTK_SYMBOL_RELOCATIONS_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shstk_account;

#define SHSTK_RELOCATION_TABLES 4 /* linkers make two: one of functions, and one of all else */

/**
 * struct shstk_relocation_table - relocations that are made when the file is loaded
 * @entries: the relocations, of type ELF_T_RELA.
 * @nr: their number.
 * @symbols: the symbols to which they refer.
 * @symbol_section: index of the section of @symbols.
 * @names: index of the section of their names, each of which ends inside the section.
 * @of_stubs: the relocations are of words through which PLT stubs jump.
 */
struct shstk_relocation_table {
	Elf_Data *entries;
	int nr;
	Elf_Data *symbols;
	size_t symbol_section;
	size_t names;
	bool of_stubs;
};

/**
 * struct shstk_relocations - the tables of a file
 * @tables: the tables, in the order of their sections.
 * @nr: number of tables.
 * @taken: bytes that were taken from the account for what was read.
 */
struct shstk_relocations {
	struct shstk_relocation_table tables[SHSTK_RELOCATION_TABLES];
	unsigned int nr;
	uint64_t taken;
};

/**
 * shstk_relocations_read() - read the tables of relocations that are made when a file is loaded
 * @elf: the file.
 * @account: what is read is counted here. The caller gives @ret->taken back, unless the file stays open.
 * @ret: receives the tables.
 *
 * What libelf has read of a section stays in memory until the file is closed. A file may say that it
 * has any number of tables, which may all be the same bytes. So only the first tables are read, with no
 * more than some millions of relocations in all, and only if the account has the memory.
 */
void shstk_relocations_read(Elf *elf, struct shstk_account *account, struct shstk_relocations *ret);

#endif
