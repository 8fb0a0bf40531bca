// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * functions.c - see functions.h.
 */
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>

#include "tools/elf/functions.h"
#include "tools/elf/symbols.h"

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

static int take_symbol(void *arg, GElf_Word table, const GElf_Sym *sym, const char *name)
{
	const struct search *s = arg;
	uint64_t offset;

	(void)table;
	if (sym->st_shndx == SHN_UNDEF || GELF_ST_TYPE(sym->st_info) != STT_FUNC ||
	    !find_offset(s->elf, sym->st_value, &offset))
		return 0;
	return s->fn(s->arg, name, offset);
}

int functions_find(int fd, int (*fn)(void *arg, const char *name, uint64_t offset), void *arg)
{
	struct search s = { .fn = fn, .arg = arg };
	int ret;

	if (elf_version(EV_CURRENT) == EV_NONE)
		return -ENOEXEC;
	s.elf = elf_begin(fd, ELF_C_READ, NULL);
	ret = is_ours(s.elf) ? symbols_walk(s.elf, take_symbol, &s) : -ENOEXEC;
	elf_end(s.elf);
	return ret;
}
