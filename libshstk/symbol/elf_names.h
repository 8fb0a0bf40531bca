/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * elf_names.h - tables of names in ELF files that anybody may have made.
 */
#ifndef SHSTK_ELF_NAMES_H
#define SHSTK_ELF_NAMES_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>

/**
 * elf_names_end() - is there an end to each name of a table?
 * @elf: the file.
 * @table: index of its section.
 *
 * elf_strptr() of libelf looks for it from the end of the table on, for each name: where the
 * last one has none that takes time for all.
 */
static inline bool elf_names_end(Elf *elf, size_t table)
{
	Elf_Scn *section = elf_getscn(elf, table);
	Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;

	return data && data->d_buf && data->d_size &&
	       !((const char *)data->d_buf)[data->d_size - 1];
}

#endif
