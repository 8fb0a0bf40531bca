/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* elf_names.h - a check of string tables in ELF files that anybody may have made. */
#ifndef SHSTK_ELF_NAMES_H
#define SHSTK_ELF_NAMES_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>

/**
 * elf_names_end() - check that each name of a string table ends inside the table
 * @elf: the file.
 * @table: index of the table's section.
 *
 * libelf's elf_strptr() looks for the end of the last name from the end of the table on, in each
 * call. Where the last name has no end, each call takes as long as the table is.
 *
 * Return: whether the last byte of the table is zero.
 */
static inline bool elf_names_end(Elf *elf, size_t table)
{
	Elf_Scn *section = elf_getscn(elf, table);
	Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;

	return data && data->d_buf && data->d_size &&
	       !((const char *)data->d_buf)[data->d_size - 1];
}

#endif
