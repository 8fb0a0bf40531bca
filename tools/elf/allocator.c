// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * allocator.c - find out by its symbols whether a program brings its own allocator. See
 * allocator.h.
 */
#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "libshstk/regular.h"
#include "libshstk/symbol/elf_file.h"
#include "tools/elf/allocator.h"
#include "tools/elf/symbols.h"

/* The names of the allocating function in common allocators, when they are linked in. */
static const char *const inside[] = {
	"malloc",    "je_malloc", "rje_malloc", "_rjem_malloc",
	"mi_malloc", "tc_malloc", "rpmalloc",	"snmalloc_malloc",
};

/* A program that imports one of these functions leaves the allocation to a library. */
static const char *const outside[] = {
	"malloc",   "calloc", "realloc", "reallocarray", "posix_memalign", "aligned_alloc",
	"memalign", "valloc", "strdup",	 "_Znwm",	 "_Znam",
};

/*
 * Functions that get memory from the kernel and give it back. Hardly any program other than an
 * allocator calls them.
 */
static const char *const pages[] = { "madvise", "sbrk", "brk" };

/**
 * struct finding - what the symbols of a file say
 * @name: the first function from inside[] that the file defines, or NULL.
 * @allocates: the file imports a function from outside[].
 * @pages: the file imports a function from pages[].
 * @symbols: the file has a complete symbol table (SHT_SYMTAB) that is not empty.
 */
struct finding {
	const char *name;
	bool allocates;
	bool pages;
	bool symbols;
};

/* Returns the entry of @names that equals @name, or NULL. */
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
	elf = shstk_elf_begin(fd);
	if (elf) {
		symbols_walk(elf, take_symbol, &f);
		elf_end(elf);
	}
	close(fd);
	if (!f.name && !f.symbols && f.pages && !f.allocates)
		return "malloc()";
	return f.name;
}
