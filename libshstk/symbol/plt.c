// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * plt.c - names of PLT stubs, through which functions of other files are called: "puts@plt".
 *
 * No symbol table has these names. The function that a stub calls is named by the relocation of the
 * word that the stub jumps through. The address of that word is taken from the stub's instructions,
 * as linkers put stubs in any order.
 */
#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../unaligned.h"
#include "elf_file.h"
#include "elf_names.h"
#include "plt.h"
#include "pool.h"

#define STUB 16 /* bytes of a stub that are read at most; most stubs have this size */
#define RELOCATIONS_MAX (1u << 18) /* most relocations that are read for one address */

/* Finds the section of stubs that covers @addr. Returns false if there is none. */
static bool find_stubs(Elf *elf, uint64_t addr, GElf_Shdr *shdr, Elf_Data **data)
{
	Elf_Scn *scn = NULL;
	const char *name;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return false;
	while ((scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, shdr) || shdr->sh_type != SHT_PROGBITS ||
		    addr < shdr->sh_addr || addr - shdr->sh_addr >= shdr->sh_size)
			continue;
		name = elf_strptr(elf, names, shdr->sh_name);
		if (!name || strncmp(name, ".plt", 4))
			continue;
		*data = elf_getdata(scn, NULL);
		return *data && (*data)->d_buf;
	}
	return false;
}

/*
 * Returns the address of the word that an x86 stub jumps through: jmp *offset(%rip), behind endbr64
 * or a bnd prefix. 0 if the code is something else.
 */
static uint64_t slot_x86(const uint8_t *code, size_t size, uint64_t addr)
{
	for (size_t i = 0; i + 6 <= size && i < 8; i++)
		if (code[i] == 0xff && code[i + 1] == 0x25)
			return addr + i + 6 + (int32_t)get32(code + i + 2);
	return 0;
}

/*
 * Returns the address of the word that an arm64 stub jumps through: adrp x16, page; ldr x17, [x16,
 * offset], perhaps behind bti. 0 if the code is something else.
 */
static uint64_t slot_arm64(const uint8_t *code, size_t size, uint64_t addr)
{
	for (size_t i = 0; i + 8 <= size && i < 8; i += 4) {
		uint32_t adrp = get32(code + i), ldr = get32(code + i + 4);
		uint64_t page = (adrp >> 29 & 3) | (adrp >> 3 & 0x1ffffc);
		int64_t pages = (int64_t)(page << 43) >> 31;

		if ((adrp & 0x9f00001f) == 0x90000010 && (ldr & 0xffc003ff) == 0xf9400211)
			return ((addr + i) & ~4095ull) + pages + (ldr >> 10 & 0xfff) * 8;
	}
	return 0;
}

static uint64_t slot_of(Elf *elf, const uint8_t *code, size_t size, uint64_t addr)
{
	GElf_Ehdr ehdr;

	if (!gelf_getehdr(elf, &ehdr) || ehdr.e_ident[EI_CLASS] != ELFCLASS64)
		return 0;
	return ehdr.e_machine == EM_X86_64  ? slot_x86(code, size, addr) :
	       ehdr.e_machine == EM_AARCH64 ? slot_arm64(code, size, addr) :
					      0;
}

/*
 * Returns the name of the symbol in the relocation of @slot in one section; NULL if there is none.
 * @left is how many relocations may still be read.
 */
static const char *find_in(Elf *elf, Elf_Scn *scn, const GElf_Shdr *shdr, uint64_t slot,
			   unsigned int *left)
{
	Elf_Data *data = elf_getdata(scn, NULL), *symbols;
	Elf_Scn *table = elf_getscn(elf, shdr->sh_link);
	GElf_Shdr link;
	GElf_Rela rela;
	GElf_Sym sym;

	if (!data || !table || !gelf_getshdr(table, &link) || link.sh_type != SHT_DYNSYM ||
	    !elf_names_end(elf, link.sh_link))
		return NULL;
	symbols = elf_getdata(table, NULL);
	for (int i = 0; *left && gelf_getrela(data, i, &rela); i++, --*left)
		if (rela.r_offset == slot)
			return symbols && gelf_getsym(symbols, GELF_R_SYM(rela.r_info), &sym) ?
				       elf_strptr(elf, link.sh_link, sym.st_name) :
				       NULL;
	return NULL;
}

/*
 * Returns the name of the symbol in the relocation of @slot, or NULL. The section with relocations
 * of stubs only (.rela.plt) comes first, as there can be many other relocations.
 */
static const char *find_symbol(Elf *elf, uint64_t slot)
{
	unsigned int left = RELOCATIONS_MAX;
	const char *name = NULL;
	GElf_Shdr shdr;

	for (int others = 0; !name && others < 2; others++) {
		Elf_Scn *scn = NULL;

		while (!name && left && (scn = elf_nextscn(elf, scn)))
			if (gelf_getshdr(scn, &shdr) && shdr.sh_type == SHT_RELA &&
			    others == !(shdr.sh_flags & SHF_INFO_LINK))
				name = find_in(elf, scn, &shdr, slot, &left);
	}
	return name && *name ? name : NULL;
}

const char *shstk_plt_name(struct shstk_pool *pool, Elf *elf, uint64_t addr, uint64_t *start)
{
	char text[512];
	const char *name;
	GElf_Shdr shdr;
	Elf_Data *data;
	uint64_t slot = 0, size, at;
	int len;

	if (!find_stubs(elf, addr, &shdr, &data))
		return NULL;
	/* On x86 .plt.got has stubs of 8 bytes; all others have 16. */
	size = shdr.sh_entsize == 8 ? 8 : STUB;
	at = (addr - shdr.sh_addr) / size * size;
	if (at < data->d_size)
		slot = slot_of(elf, (uint8_t *)data->d_buf + at,
			       data->d_size - at < size ? data->d_size - at : size,
			       shdr.sh_addr + at);
	name = slot ? find_symbol(elf, slot) : NULL;
	if (!name)
		return NULL;
	len = snprintf(text, sizeof(text), "%s@plt", name);
	if (len < 0 || len >= (int)sizeof(text))
		return NULL;
	*start = shdr.sh_addr + at;
	return shstk_pool_text(pool, text, len);
}
