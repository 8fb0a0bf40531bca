// SPDX-License-Identifier: GPL-2.0-or-later
/* functions.c - find functions in an ELF file. See functions.h. */
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>

#include "libshstk/symbol/elf_file.h"
#include "tools/elf/functions.h"
#include "tools/elf/symbols.h"

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#else
#define OWN_MACHINE EM_AARCH64
#endif

#define MAX_SEGMENTS 64 /* segments of code; files have one or two, and each symbol searches all */

/* The caller of functions_find(), and the segments of the file that hold code. */
struct function_search {
	GElf_Phdr segments[MAX_SEGMENTS];
	size_t nr_segments;
	int (*fn)(void *arg, const char *name, uint64_t offset);
	void *arg;
};

static bool is_ours(Elf *elf)
{
	GElf_Ehdr header;

	return elf && gelf_getehdr(elf, &header) && header.e_machine == OWN_MACHINE &&
	       header.e_ident[EI_CLASS] == ELFCLASS64;
}

static void read_segments(Elf *elf, struct function_search *s)
{
	GElf_Phdr p;
	size_t nr;

	if (elf_getphdrnum(elf, &nr))
		return;
	for (size_t i = 0; i < nr && s->nr_segments < MAX_SEGMENTS; i++)
		if (gelf_getphdr(elf, (int)i, &p) && p.p_type == PT_LOAD && p.p_flags & PF_X)
			s->segments[s->nr_segments++] = p;
}

/* Sets @ret to the file offset of the address @addr. Returns false if no segment has it. */
static bool find_offset(const struct function_search *s, uint64_t addr, uint64_t *ret)
{
	for (size_t i = 0; i < s->nr_segments; i++) {
		const GElf_Phdr *p = &s->segments[i];

		if (addr < p->p_vaddr || addr - p->p_vaddr >= p->p_filesz)
			continue;
		*ret = addr - p->p_vaddr + p->p_offset;
		return true;
	}
	return false;
}

static int take_symbol(void *arg, GElf_Word table, const GElf_Sym *sym, const char *name)
{
	const struct function_search *s = arg;
	uint64_t offset;

	(void)table;
	if (sym->st_shndx == SHN_UNDEF || GELF_ST_TYPE(sym->st_info) != STT_FUNC ||
	    !find_offset(s, sym->st_value, &offset))
		return 0;
	return s->fn(s->arg, name, offset);
}

int functions_find(int fd, int (*fn)(void *arg, const char *name, uint64_t offset), void *arg)
{
	struct function_search s = { .fn = fn, .arg = arg };
	int ret = -ENOEXEC;
	Elf *elf;

	elf = shstk_elf_begin(fd);
	if (is_ours(elf)) {
		read_segments(elf, &s);
		ret = symbols_walk(elf, take_symbol, &s);
	}
	elf_end(elf);
	return ret;
}
