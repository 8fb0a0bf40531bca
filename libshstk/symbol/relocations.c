// SPDX-License-Identifier: LGPL-2.1-or-later
/* relocations.c - reads tables of relocations in ELF files that anybody may have made. See relocations.h. */
#include <gelf.h>

#include "budget.h"
#include "elf_names.h"
#include "relocations.h"

#define MAX_RELOCATIONS (1u << 22) /* in all tables of a file */
#define MAX_SYMBOLS (1u << 22)
#define MAX_NAMES (1u << 29) /* bytes */

/* The headers of a table, of the symbols to which it refers, and of the names of these. */
struct headers {
	GElf_Shdr relocations, symbols, names;
};

/* Returns false if the section is no table of relocations that are made when the file is loaded. */
static bool read_headers(Elf *elf, Elf_Scn *section, struct headers *h)
{
	return gelf_getshdr(section, &h->relocations) && h->relocations.sh_type == SHT_RELA &&
	       gelf_getshdr(elf_getscn(elf, h->relocations.sh_link), &h->symbols) &&
	       h->symbols.sh_type == SHT_DYNSYM &&
	       gelf_getshdr(elf_getscn(elf, h->symbols.sh_link), &h->names);
}

/* Returns how many relocations were read already. */
static unsigned int count(const struct shstk_relocations *r)
{
	unsigned int ret = 0;

	for (unsigned int i = 0; i < r->nr; i++)
		ret += (unsigned int)r->tables[i].nr;
	return ret;
}

/* Returns whether the symbols that a table refers to were read with another table. */
static bool has_symbols(const struct shstk_relocations *r, size_t symbol_section)
{
	for (unsigned int i = 0; i < r->nr; i++)
		if (r->tables[i].symbol_section == symbol_section)
			return true;
	return false;
}

/* Takes the memory for a table from the account. Returns false if the table is too large. */
static bool take(const struct headers *h, size_t entry, struct shstk_account *account,
		 struct shstk_relocations *r)
{
	const size_t symbols = h->relocations.sh_link;
	uint64_t bytes = h->relocations.sh_size;

	if (h->relocations.sh_size > (MAX_RELOCATIONS - count(r)) * entry ||
	    h->symbols.sh_size > MAX_SYMBOLS * sizeof(Elf64_Sym) || h->names.sh_size > MAX_NAMES)
		return false;
	if (!has_symbols(r, symbols))
		bytes += h->symbols.sh_size + h->names.sh_size;
	if (!shstk_account_take(account, bytes))
		return false;
	r->taken += bytes;
	return true;
}

/* Reads a table whose memory was taken. */
static void read_table(Elf *elf, Elf_Scn *section, const struct headers *h, size_t entry,
		       struct shstk_relocation_table *ret)
{
	*ret = (struct shstk_relocation_table){
		.symbol_section = h->relocations.sh_link,
		.names = h->symbols.sh_link,
		.of_stubs = h->relocations.sh_flags & SHF_INFO_LINK,
	};
	if (!elf_names_end(elf, ret->names))
		return;
	ret->symbols = elf_getdata(elf_getscn(elf, ret->symbol_section), NULL);
	ret->entries = ret->symbols ? elf_getdata(section, NULL) : NULL;
	ret->nr = ret->entries ? (int)(ret->entries->d_size / entry) : 0;
}

void shstk_relocations_read(Elf *elf, struct shstk_account *account, struct shstk_relocations *ret)
{
	const size_t entry = gelf_fsize(elf, ELF_T_RELA, 1, EV_CURRENT);
	Elf_Scn *section = NULL;
	struct headers h;

	*ret = (struct shstk_relocations){ 0 };
	while (entry && ret->nr < SHSTK_RELOCATION_TABLES &&
	       (section = elf_nextscn(elf, section))) {
		if (!read_headers(elf, section, &h))
			continue;
		if (!take(&h, entry, account, ret))
			break;
		read_table(elf, section, &h, entry, &ret->tables[ret->nr]);
		ret->nr++;
	}
}
