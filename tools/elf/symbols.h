/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symbols.h - the symbols of a file, whichever of its tables they are in.
 */
#ifndef TOOLS_ELF_SYMBOLS_H
#define TOOLS_ELF_SYMBOLS_H

#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * symbols_walk() - hand on all symbols that have a name
 * @elf: the file.
 * @fn: called for each; what is not 0 ends the walk. @table is SHT_SYMTAB or SHT_DYNSYM.
 * @arg: its first argument.
 *
 * No more than two tables are looked at, and none of more than four million symbols.
 *
 * Return: what @fn returned last, 0 if there is no symbol.
 */
int symbols_walk(Elf *elf,
		 int (*fn)(void *arg, GElf_Word table, const GElf_Sym *sym, const char *name),
		 void *arg);

/**
 * symbols_bias() - what to add to symbols' values where a file is mapped
 * @elf: the file.
 * @start: where a part of it is mapped that is code.
 * @offset: what offset of the file lies there.
 * @ret: receives it.
 *
 * Return: false: the file's program headers have no code there.
 */
bool symbols_bias(Elf *elf, uint64_t start, uint64_t offset, uint64_t *ret);

#endif
