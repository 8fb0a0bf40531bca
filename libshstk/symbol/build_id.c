// SPDX-License-Identifier: LGPL-2.1-or-later
/* build_id.c - the GNU build id of an ELF file that anybody may have made. See build_id.h. */
#include <gelf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "build_id.h"

/* Linkers make two or three places of notes, and a note of them has some hundred bytes at most. */
#define MAX_PLACES 16
#define MAX_BYTES (1u << 16) /* of one place */

/* Looks for the id among the notes in @size bytes at @offset of the file. Returns its size, or 0. */
static size_t find_in(Elf *elf, uint64_t offset, uint64_t size, uint64_t align, const void **ret)
{
	Elf_Data *data = elf_getdata_rawchunk(elf, (int64_t)offset,
					      size < MAX_BYTES ? size : MAX_BYTES,
					      align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
	size_t at = 0, name, desc;
	GElf_Nhdr note;

	while (data && (at = gelf_getnote(data, at, &note, &name, &desc))) {
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof("GNU") ||
		    memcmp((const char *)data->d_buf + name, "GNU", sizeof("GNU")))
			continue;
		*ret = (const char *)data->d_buf + desc;
		return note.n_descsz;
	}
	return 0;
}

static size_t find_in_sections(Elf *elf, const void **ret)
{
	Elf_Scn *section = NULL;
	unsigned int places = 0;
	GElf_Shdr header;
	size_t size = 0;

	while (!size && places < MAX_PLACES && (section = elf_nextscn(elf, section))) {
		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_NOTE)
			continue;
		places++;
		size = find_in(elf, header.sh_offset, header.sh_size, header.sh_addralign, ret);
	}
	return size;
}

static size_t find_in_segments(Elf *elf, const void **ret)
{
	unsigned int places = 0;
	size_t nr, size = 0;
	GElf_Phdr header;

	if (elf_getphdrnum(elf, &nr))
		return 0;
	for (size_t i = 0;
	     !size && places < MAX_PLACES && i < nr && gelf_getphdr(elf, (int)i, &header); i++) {
		if (header.p_type != PT_NOTE)
			continue;
		places++;
		size = find_in(elf, header.p_offset, header.p_filesz, header.p_align, ret);
	}
	return size;
}

size_t shstk_build_id(Elf *elf, const void **ret)
{
	GElf_Ehdr header;
	size_t size;

	if (!gelf_getehdr(elf, &header))
		return 0;
	size = header.e_type == ET_REL ? 0 : find_in_segments(elf, ret);
	return size ? size : find_in_sections(elf, ret);
}
