// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * allocator.c - find the functions of an allocator among a program's symbols.
 */
#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "libshstk/regular.h"
#include "tools/elf/allocator.h"
#include "tools/elf/symbols.h"

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
 * @symbols: there is a table of all symbols, and something in it.
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

static int take_symbol(void *arg, GElf_Word table, const GElf_Sym *sym, const char *name)
{
	struct finding *f = arg;

	f->symbols |= table == SHT_SYMTAB;
	if (sym->st_shndx == SHN_UNDEF) {
		f->allocates |= !!AMONG(name, outside);
		f->pages |= !!AMONG(name, pages);
	} else if (GELF_ST_TYPE(sym->st_info) == STT_FUNC && !f->name) {
		f->name = AMONG(name, inside);
	}
	return 0;
}

const char *allocator_inside(const char *path)
{
	int fd = regular_open(path);
	struct finding f = { .name = NULL };
	Elf *elf;

	if (fd < 0)
		return NULL;
	if (elf_version(EV_CURRENT) == EV_NONE) {
		close(fd);
		return NULL;
	}
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf) {
		symbols_walk(elf, take_symbol, &f);
		elf_end(elf);
	}
	close(fd);
	if (!f.name && !f.symbols && f.pages && !f.allocates)
		return "malloc()";
	return f.name;
}
