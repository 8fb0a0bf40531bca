/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* elf_names.h - a check of string tables in ELF files that anybody may have made. */
#ifndef SHSTK_ELF_NAMES_H
#define SHSTK_ELF_NAMES_H

#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>

/**
 * elf_names_end() - check that each name of a string table ends inside the table
 * @elf: the file.
 * @table: index of the table's section.
 *
 * libelf's elf_strptr() looks for the end of the last name from the end of the table on, in each
 * call. Where the last name has no end, each call takes as long as the table is. It also unpacks a
 * compressed table, of which a few bytes may be gigabytes; linkers do not compress names.
 *
 * Return: whether the table is not compressed, and its last byte is zero.
 */
static inline bool elf_names_end(Elf *elf, size_t table)
{
	Elf_Scn *section = elf_getscn(elf, table);
	GElf_Shdr header;
	Elf_Data *data;

	if (!section || !gelf_getshdr(section, &header) || header.sh_flags & SHF_COMPRESSED)
		return false;
	data = elf_rawdata(section, NULL);
	return data && data->d_buf && data->d_size &&
	       !((const char *)data->d_buf)[data->d_size - 1];
}

#endif
