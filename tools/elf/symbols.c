// SPDX-License-Identifier: GPL-2.0-or-later
/* symbols.c - read the symbol tables of an ELF file. See symbols.h. */
#include <stddef.h>

#include "libshstk/symbol/elf_names.h"
#include "tools/elf/symbols.h"

#define MAX_TABLES 2 /* an SHT_SYMTAB and an SHT_DYNSYM */
#define MAX_SYMBOLS (1u << 22)
#define MAX_NAMES (1u << 29) /* bytes */
#define PAGE 4096

/*
 * Returns true if a symbol table and its names have an acceptable size. A sparse file can claim any
 * size, and reading it would need as much memory.
 */
static bool is_bounded(Elf *elf, const GElf_Shdr *header)
{
	Elf_Scn *section = elf_getscn(elf, header->sh_link);
	GElf_Shdr names;

	return section && gelf_getshdr(section, &names) && names.sh_size <= MAX_NAMES &&
	       header->sh_size <= MAX_SYMBOLS * sizeof(Elf64_Sym);
}

typedef int symbol_fn(void *arg, GElf_Word table, const GElf_Sym *sym, const char *name);

static int walk_table(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, symbol_fn *fn, void *arg)
{
	Elf_Data *data = is_bounded(elf, header) ? elf_getdata(section, NULL) : NULL;
	size_t nr = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;
	GElf_Sym sym;
	int ret = 0;

	if (!nr || !elf_names_end(elf, header->sh_link))
		return 0;
	if (nr > MAX_SYMBOLS)
		nr = MAX_SYMBOLS;
	for (size_t i = 0; i < nr && !ret && gelf_getsym(data, (int)i, &sym); i++) {
		const char *name = elf_strptr(elf, header->sh_link, sym.st_name);

		if (name)
			ret = fn(arg, header->sh_type, &sym, name);
	}
	return ret;
}

/* Returns the bytes of a table and of its names, or 0 if it is not read. */
static uint64_t table_bytes(Elf *elf, const GElf_Shdr *header)
{
	GElf_Shdr names;

	return is_bounded(elf, header) && gelf_getshdr(elf_getscn(elf, header->sh_link), &names) ?
		       header->sh_size + names.sh_size :
		       0;
}

static bool is_table(const GElf_Shdr *header)
{
	return header->sh_type == SHT_SYMTAB || header->sh_type == SHT_DYNSYM;
}

uint64_t symbols_bytes(Elf *elf)
{
	Elf_Scn *section = NULL;
	unsigned int tables = 0;
	GElf_Shdr header;
	uint64_t ret = 0;

	while (tables < MAX_TABLES && (section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) && is_table(&header)) {
			ret += table_bytes(elf, &header);
			tables++;
		}
	return ret;
}

int symbols_walk(Elf *elf, symbol_fn *fn, void *arg)
{
	Elf_Scn *section = NULL;
	unsigned int tables = 0;
	GElf_Shdr header;
	int ret = 0;

	while (!ret && tables < MAX_TABLES && (section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) && is_table(&header)) {
			ret = walk_table(elf, section, &header, fn, arg);
			tables++;
		}
	return ret;
}

/*
 * The comparison is by pages, because a mapping begins at the start of the page that has the
 * segment's first byte.
 */
bool symbols_bias(Elf *elf, uint64_t start, uint64_t offset, uint64_t *ret)
{
	size_t nr;
	GElf_Phdr p;

	if (elf_getphdrnum(elf, &nr))
		return false;
	for (size_t i = 0; i < nr && gelf_getphdr(elf, (int)i, &p); i++) {
		if (p.p_type != PT_LOAD || !(p.p_flags & PF_X) || offset + PAGE <= p.p_offset ||
		    offset >= p.p_offset + p.p_filesz)
			continue;
		*ret = start - (p.p_vaddr - p.p_offset + offset);
		return true;
	}
	return false;
}
