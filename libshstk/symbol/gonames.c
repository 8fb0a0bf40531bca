// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * gonames.c - names, files and lines from the table that Go programs carry.
 *
 * The table is used before debug information: it is also there in stripped programs, it is what the
 * program prints of itself, and it need not be unpacked.
 */
#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "budget.h"
#include "elf_file.h"
#include "gonames.h"
#include "libshstk/go/gopclntab.h"
#include "object_names.h"
#include "pool.h"
#include "symbol.h"
#include "symtab.h"

struct shstk_gonames {
	struct shstk_pool *pool;
	struct gofile file;
	const struct shstk_symbols_opts *opts;
};

/*
 * Returns whether a file may be a Go program. elf_rawfile() reads the whole file, so it is called
 * only for Go programs.
 */
static bool may_be_go(Elf *elf)
{
	size_t nr;

	if (!elf_getshdrnum(elf, &nr) && !nr)
		return true;
	return shstk_elf_has(elf, ".gopclntab") || shstk_elf_has(elf, ".go.buildinfo") ||
	       shstk_elf_has(elf, ".data.rel.ro.gopclntab");
}

/*
 * Takes memory for a copy of the whole file, where it is not mapped. Returns false if there is
 * none.
 */
static bool afford(int fd, struct shstk_account *account)
{
	struct stat st;

	return !shstk_elf_copied(fd) ||
	       (!fstat(fd, &st) && shstk_account_take(account, st.st_size));
}

struct shstk_gonames *shstk_gonames_create(struct shstk_pool *pool, Elf *elf, int fd,
					   const struct shstk_symbols_opts *opts,
					   struct shstk_account *account)
{
	struct shstk_gonames *go;
	size_t size;
	char *bytes;

	if (!may_be_go(elf) || !afford(fd, account))
		return NULL;
	bytes = elf_rawfile(elf, &size);
	go = bytes ? calloc(1, sizeof(*go)) : NULL;
	if (!go)
		return NULL;
	go->pool = pool;
	go->opts = opts;
	if (!shstk_gofile_init(&go->file, bytes, size))
		return go;
	free(go);
	return NULL;
}

void shstk_gonames_destroy(struct shstk_gonames *go)
{
	if (go)
		shstk_gofile_deinit(&go->file);
	free(go);
}

/*
 * Returns the name of a function with its type arguments. Before Go 1.21 the table has "[...]" in
 * their place. The symbol of the function has all of them; functions that were inlined into it have
 * no symbol and stay without.
 */
static const char *whole_name(const char *name, const struct shstk_sym *sym)
{
	static const char left_out[] = "[...]";
	const char *first = strstr(name, left_out), *at, *tail = first;
	size_t len, head;

	if (!first)
		return name;
	for (at = first; at; at = strstr(tail, left_out))
		tail = at + strlen(left_out) - 1;
	head = first + 1 - name;
	len = strlen(sym->name);
	if (len <= head + strlen(tail) || strncmp(sym->name, name, head) ||
	    strcmp(sym->name + len - strlen(tail), tail))
		return name;
	return sym->name;
}

static bool take(const struct shstk_gonames *go, const struct goline *l,
		 struct shstk_symframe *frame)
{
	*frame = (struct shstk_symframe){
		.function = shstk_pool_text(go->pool, l->function, strlen(l->function)),
		.start_line = l->start_line,
		.inlined = l->inlined,
	};
	frame->linkage = frame->function;
	if (!go->opts->no_lines && l->file) {
		frame->file = shstk_pool_text(go->pool, l->file, strlen(l->file));
		frame->line = l->line;
	}
	return frame->function;
}

unsigned int shstk_gonames_find(const struct shstk_gonames *go, uint64_t addr,
				const struct shstk_sym *sym, struct shstk_resolved *ret)
{
	const struct gopclntab *tab = &go->file.tab;
	struct goline lines[SHSTK_FRAMES_MAX];
	unsigned int i, nr, first;
	struct gofunc f;

	nr = shstk_gopclntab_lines(tab, addr, lines, SHSTK_FRAMES_MAX);
	if (!nr || !shstk_gopclntab_find(tab, addr, &f))
		return 0;
	ret->start = f.entry;
	if (sym && sym->addr == f.entry)
		lines[nr - 1].function = whole_name(lines[nr - 1].function, sym);
	first = go->opts->no_inline ? nr - 1 : 0;
	for (i = first; i < nr; i++)
		if (!take(go, &lines[i], &ret->frames[i - first]))
			return 0;
	return nr - first;
}
