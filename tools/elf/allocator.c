// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * allocator.c - find the functions of an allocator among a program's symbols.
 */
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/elf/allocator.h"

#define MAX_SYMBOLS (1u << 22)

/* By the names that allocators have when they are linked in. */
static const char *const inside[] = {
	"malloc",    "je_malloc", "rje_malloc", "_rjem_malloc",
	"mi_malloc", "tc_malloc", "rpmalloc",	"snmalloc_malloc",
};

/* What a program calls that leaves allocating to others. */
static const char *const outside[] = {
	"malloc",   "calloc", "realloc", "reallocarray", "posix_memalign", "aligned_alloc",
	"memalign", "valloc", "strdup",	 "_Znwm",	 "_Znam",
};

/* What hardly any program needs but an allocator: to get and to give back memory. */
static const char *const pages[] = { "madvise", "sbrk", "brk" };

/**
 * struct finding - what the symbols say
 * @name: a function that allocates, defined here.
 * @allocates: one of @outside is imported.
 * @pages: one of @pages is.
 * @symbols: there is a table of all symbols.
 */
struct finding {
	const char *name;
	bool allocates;
	bool pages;
	bool symbols;
};

static const char *among(const char *name, const char *const *names, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(name, names[i]))
			return names[i];
	return NULL;
}

#define AMONG(name, names) among(name, names, sizeof(names) / sizeof(*(names)))

static void take_symbol(struct finding *f, const GElf_Sym *sym, const char *name)
{
	if (sym->st_shndx == SHN_UNDEF) {
		f->allocates |= !!AMONG(name, outside);
		f->pages |= !!AMONG(name, pages);
	} else if (GELF_ST_TYPE(sym->st_info) == STT_FUNC && !f->name) {
		f->name = AMONG(name, inside);
	}
}

static void take_table(struct finding *f, Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t nr = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;
	GElf_Sym sym;

	if (nr > MAX_SYMBOLS)
		nr = MAX_SYMBOLS;
	for (size_t i = 0; i < nr && gelf_getsym(data, (int)i, &sym); i++) {
		const char *name = elf_strptr(elf, header->sh_link, sym.st_name);

		if (name)
			take_symbol(f, &sym, name);
	}
}

static void take_file(struct finding *f, Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section))) {
		if (!gelf_getshdr(section, &header) ||
		    (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM))
			continue;
		f->symbols |= header.sh_type == SHT_SYMTAB;
		take_table(f, elf, section, &header);
	}
}

const char *allocator_inside(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct finding f = { .name = NULL };
	struct stat st;
	Elf *elf;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || elf_version(EV_CURRENT) == EV_NONE) {
		close(fd);
		return NULL;
	}
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf) {
		take_file(&f, elf);
		elf_end(elf);
	}
	close(fd);
	if (!f.name && !f.symbols && f.pages && !f.allocates)
		return "malloc()";
	return f.name;
}
