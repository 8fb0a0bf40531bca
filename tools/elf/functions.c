// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * functions.c - see functions.h.
 */
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>

#include "tools/elf/functions.h"

#define MAX_SYMBOLS (1u << 22)

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#else
#define OWN_MACHINE EM_AARCH64
#endif

/* Who wants the functions of a file. */
struct search {
	Elf *elf;
	int (*fn)(void *arg, const char *name, uint64_t offset);
	void *arg;
};

static bool is_ours(Elf *elf)
{
	GElf_Ehdr header;

	return elf && gelf_getehdr(elf, &header) && header.e_machine == OWN_MACHINE &&
	       header.e_ident[EI_CLASS] == ELFCLASS64;
}

/* Of an address, by the segment that has it. */
static bool find_offset(Elf *elf, uint64_t addr, uint64_t *ret)
{
	size_t nr;
	GElf_Phdr p;

	if (elf_getphdrnum(elf, &nr))
		return false;
	for (size_t i = 0; i < nr && gelf_getphdr(elf, (int)i, &p); i++) {
		if (p.p_type != PT_LOAD || !(p.p_flags & PF_X) || addr < p.p_vaddr ||
		    addr - p.p_vaddr >= p.p_filesz)
			continue;
		*ret = addr - p.p_vaddr + p.p_offset;
		return true;
	}
	return false;
}

static int take_table(const struct search *s, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t nr = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;
	uint64_t offset;
	GElf_Sym sym;
	int ret = 0;

	if (nr > MAX_SYMBOLS)
		nr = MAX_SYMBOLS;
	for (size_t i = 0; i < nr && !ret && gelf_getsym(data, (int)i, &sym); i++) {
		const char *name;

		if (sym.st_shndx == SHN_UNDEF || GELF_ST_TYPE(sym.st_info) != STT_FUNC)
			continue;
		name = elf_strptr(s->elf, header->sh_link, sym.st_name);
		if (name && find_offset(s->elf, sym.st_value, &offset))
			ret = s->fn(s->arg, name, offset);
	}
	return ret;
}

int functions_find(int fd, int (*fn)(void *arg, const char *name, uint64_t offset), void *arg)
{
	struct search s = { .fn = fn, .arg = arg };
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	int ret = 0;

	if (elf_version(EV_CURRENT) == EV_NONE)
		return -ENOEXEC;
	s.elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!is_ours(s.elf))
		ret = -ENOEXEC;
	while (!ret && (section = elf_nextscn(s.elf, section)))
		if (gelf_getshdr(section, &header) &&
		    (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM))
			ret = take_table(&s, section, &header);
	elf_end(s.elf);
	return ret;
}
