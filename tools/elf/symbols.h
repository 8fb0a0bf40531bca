/* SPDX-License-Identifier: GPL-2.0-or-later */
/* symbols.h - the symbols of an ELF file, from all its symbol tables. */
#ifndef TOOLS_ELF_SYMBOLS_H
#define TOOLS_ELF_SYMBOLS_H

#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * symbols_walk() - call a function for each symbol that has a name
 * @elf: the file.
 * @fn: the function. A value other than 0 ends the walk. Its @table is SHT_SYMTAB or SHT_DYNSYM.
 * @arg: first argument of @fn.
 *
 * Reads two tables at most, and ignores a table of more than four million symbols.
 *
 * Return: the last value of @fn, or 0 if there is no symbol.
 */
int symbols_walk(Elf *elf,
		 int (*fn)(void *arg, GElf_Word table, const GElf_Sym *sym, const char *name),
		 void *arg);

/* Returns how many bytes symbols_walk() reads into memory. */
uint64_t symbols_bytes(Elf *elf);

/**
 * symbols_bias() - get the difference between addresses and symbol values of a mapped file
 * @elf: the file.
 * @start: address of a mapping of the file that is code.
 * @offset: offset of @start in the file.
 * @ret: receives the value to add to a symbol's value to get its address.
 *
 * Return: true, or false if the file's program headers have no code there.
 */
bool symbols_bias(Elf *elf, uint64_t start, uint64_t offset, uint64_t *ret);

#endif
