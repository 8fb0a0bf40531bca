// SPDX-License-Identifier: GPL-2.0-or-later
/* golang.c - recognize programs made by Go. See golang.h. */
#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <string.h>

#include "libshstk/symbol/elf_file.h"
#include "tools/elf/golang.h"

/* The section .go.buildinfo says which Go version made a program. Stripped programs have it too. */
static bool is_go(Elf *elf)
{
	GElf_Shdr head;

	return shstk_elf_next_named(elf, NULL, ".go.buildinfo", &head);
}

/* Bytes of the largest dynamic section that is read; those of programs have a few hundred. */
#define MOST_DYNAMIC (1u << 20)

static bool names_library(Elf_Scn *dynamic)
{
	Elf_Data *data = elf_getdata(dynamic, NULL);
	GElf_Dyn dyn;

	for (int i = 0; data && gelf_getdyn(data, i, &dyn); i++)
		if (dyn.d_tag == DT_NEEDED)
			return true;
	return false;
}

/*
 * DT_NEEDED decides, not PT_INTERP: position-independent programs without C have an interpreter,
 * but need no libraries. Only the first dynamic section counts, and no large one: libelf makes room for
 * as many bytes as each section's header says, and anybody may have made the file.
 */
static bool needs_libraries(Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr head;

	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &head) && head.sh_type == SHT_DYNAMIC)
			return head.sh_size <= MOST_DYNAMIC && names_library(section);
	return false;
}

/* Tells the kind of @elf, which may be NULL, and ends it. */
static enum golang_kind kind_and_end(Elf *elf)
{
	enum golang_kind ret = GOLANG_NONE;

	if (elf && is_go(elf))
		ret = needs_libraries(elf) ? GOLANG_WITH_C : GOLANG_ALONE;
	elf_end(elf);
	return ret;
}

enum golang_kind golang_kind(int fd)
{
	return kind_and_end(shstk_elf_begin(fd));
}

enum golang_kind golang_kind_of(const void *data, size_t size)
{
	/* libelf writes nothing to a file that is only read. */
	return kind_and_end(shstk_elf_memory((void *)data, size));
}
