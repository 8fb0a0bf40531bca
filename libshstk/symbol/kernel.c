// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * kernel.c - names of the running kernel's functions, from /proc/kallsyms.
 *
 * All processes share them, so they belong to a view of their own, made when an
 * address of the kernel is met first. A kernel that hides its addresses from us
 * shows them as zero; then there are no names.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"

#define SYMBOLS_MAX (4u << 20)
#define LAST_SIZE 4096

struct function {
	uint64_t addr;
	char *name;
};

struct functions {
	struct function *v;
	size_t nr;
	size_t max;
};

static int by_address(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* A line of kallsyms is an address, a letter and a name, then perhaps a module. */
static bool add_line(struct functions *f, const char *line)
{
	struct function *more;
	char *name;
	uint64_t addr = strtoull(line, &name, 16);

	if (name == line || !(addr >> 63) || strlen(name) < 4 || !strchr("tTwW", name[1]))
		return true;
	name += 3;
	name[strcspn(name, " \t\n")] = '\0';
	more = shstk_grow(f->v, f->nr, &f->max, sizeof(*more));
	if (!more)
		return false;
	f->v = more;
	more[f->nr] = (struct function){ addr, strdup(name) };
	return more[f->nr++].name;
}

static void read_functions(struct functions *f)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	char *line = NULL;
	size_t room = 0;

	while (file && f->nr < SYMBOLS_MAX && getline(&line, &room, file) > 0)
		if (!add_line(f, line))
			break;
	free(line);
	if (file)
		fclose(file);
	if (f->nr)
		qsort(f->v, f->nr, sizeof(*f->v), by_address);
}

/* As the text of a perf-map: each function reaches up to the next one. */
static struct shstk_perfmap *make_map(const struct functions *f)
{
	struct shstk_perfmap *map = shstk_perfmap_create();
	char *text = NULL;
	size_t size = 0;
	FILE *out = map ? open_memstream(&text, &size) : NULL;

	if (!out)
		return map;
	for (size_t i = 0; i < f->nr; i++) {
		uint64_t end = i + 1 < f->nr ? f->v[i + 1].addr : f->v[i].addr + LAST_SIZE;

		fprintf(out, "%lx %lx %s\n", (unsigned long)f->v[i].addr,
			(unsigned long)(end - f->v[i].addr), f->v[i].name);
	}
	if (!fclose(out))
		shstk_perfmap_parse(map, text, size);
	free(text);
	return map;
}

const struct shstk_symmap *shstk_kernel_map(struct shstk_symbols *symbols)
{
	struct functions functions = { 0 };
	struct shstk_symproc *kernel = symbols->kernel;

	if (!kernel) {
		if (shstk_symproc_create(symbols, 0, &kernel))
			return NULL;
		symbols->kernel = kernel;
		kernel->none.pub.path = "[kernel.kallsyms]";
		kernel->none.pub.name = "[kernel]";
		read_functions(&functions);
		kernel->extra = make_map(&functions);
		for (size_t i = 0; i < functions.nr; i++)
			free(functions.v[i].name);
		free(functions.v);
	}
	return &kernel->none.pub;
}
