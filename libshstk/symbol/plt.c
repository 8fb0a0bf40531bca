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
#include "budget.h"
#include "elf_file.h"
#include "plt.h"
#include "pool.h"
#include "relocations.h"

#define STUB 16 /* bytes of a stub that are read at most; most stubs have this size */
#define RELOCATIONS_MAX (1u << 18) /* most relocations that are looked at for one address */

/* Finds the section of stubs that covers @addr. Returns false if there is none. */
static bool find_stubs(Elf *elf, uint64_t addr, GElf_Shdr *shdr)
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
		if (name && !strncmp(name, ".plt", 4))
			return true;
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
 * Returns the address of the word that the stub jumps through which is @at bytes behind the start of a
 * section and has at most @size bytes; 0 if there is none. No more of the section is read.
 */
static uint64_t read_stub(Elf *elf, int fd, const GElf_Shdr *shdr, uint64_t at, uint64_t size)
{
	const uint64_t rest = shdr->sh_size - at;
	uint8_t code[STUB];

	size = rest < size ? rest : size;
	return shstk_elf_read(elf, fd, shdr->sh_offset + at, code, size) ?
		       slot_of(elf, code, size, shdr->sh_addr + at) :
		       0;
}

/*
 * Returns the name of the symbol in the relocation of @slot in one table; NULL if there is none.
 * @left is how many relocations may still be looked at.
 */
static const char *find_in(Elf *elf, const struct shstk_relocation_table *t, uint64_t slot,
			   unsigned int *left)
{
	GElf_Rela rela;
	GElf_Sym sym;

	for (int i = 0; *left && i < t->nr && gelf_getrela(t->entries, i, &rela); i++, --*left)
		if (rela.r_offset == slot)
			return gelf_getsym(t->symbols, (int)GELF_R_SYM(rela.r_info), &sym) ?
				       elf_strptr(elf, t->names, sym.st_name) :
				       NULL;
	return NULL;
}

/*
 * Returns the name of the symbol in the relocation of @slot, or NULL. The table with relocations of
 * stubs only (.rela.plt) comes first, as there can be many other relocations.
 */
static const char *find_symbol(Elf *elf, const struct shstk_relocations *r, uint64_t slot)
{
	unsigned int left = RELOCATIONS_MAX;
	const char *name = NULL;

	for (int others = 0; !name && others < 2; others++)
		for (unsigned int i = 0; !name && i < r->nr; i++)
			if (others == !r->tables[i].of_stubs)
				name = find_in(elf, &r->tables[i], slot, &left);
	return name && *name ? name : NULL;
}

/* Returns the name of the function that the stub calls which covers @addr, or NULL. */
static const char *called(struct shstk_plt *plt, Elf *elf, int fd, struct shstk_account *account,
			  uint64_t addr, uint64_t *start)
{
	GElf_Shdr shdr;
	uint64_t slot, size, at;

	if (!find_stubs(elf, addr, &shdr))
		return NULL;
	/* On x86 .plt.got has stubs of 8 bytes; all others have 16. */
	size = shdr.sh_entsize == 8 ? 8 : STUB;
	at = (addr - shdr.sh_addr) / size * size;
	*start = shdr.sh_addr + at;
	slot = read_stub(elf, fd, &shdr, at, size);
	if (!slot)
		return NULL;
	if (!plt->is_read)
		shstk_relocations_read(elf, account, &plt->relocations);
	plt->is_read = true;
	return find_symbol(elf, &plt->relocations, slot);
}

const char *shstk_plt_name(struct shstk_plt *plt, struct shstk_pool *pool, Elf *elf, int fd,
			   struct shstk_account *account, uint64_t addr, uint64_t *start)
{
	const char *name = NULL;
	uint64_t at = 0;
	char text[512];
	int len;

	if (shstk_account_begin(account))
		name = called(plt, elf, fd, account, addr, &at);
	shstk_account_end(account);
	if (!name)
		return NULL;
	len = snprintf(text, sizeof(text), "%s@plt", name);
	if (len < 0 || len >= (int)sizeof(text))
		return NULL;
	*start = at;
	return shstk_pool_text(pool, text, len);
}
