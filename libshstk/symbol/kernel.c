// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * kernel.c - names of the running kernel's functions, from /proc/kallsyms.
 *
 * All processes share them, so they belong to a view of their own, made when an
 * address of the kernel is met first. A kernel that hides its addresses from us
 * shows them as zero; then there are no names.
 *
 * There are more than a hundred thousand functions, of which a profile shows a few
 * dozen: the text is kept as it was read, and the functions point into it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store.h"

#define TEXT_FIRST (8u << 20) /* room that the text of most kernels fits into */
#define TEXT_MAX (512u << 20)
#define LAST_SIZE 4096
#define DIGITS 16 /* of an address */

/**
 * struct shstk_kernel_functions - functions of the kernel
 * @text: what was read; @v's names lie in it.
 * @v: the functions by address, each reaching up to the next one; @nr of them, room
 *     for @max.
 */
struct shstk_kernel_functions {
	char *text;
	struct shstk_perfmap_entry *v;
	size_t nr;
	size_t max;
};

/* Of functions with one address the last one in the text names it. */
static int by_address(const void *a, const void *b)
{
	const struct shstk_perfmap_entry *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

static bool parse_address(const char *s, uint64_t *ret)
{
	uint64_t addr = 0;

	for (int i = 0; i < DIGITS; i++) {
		char c = s[i];

		if (c >= '0' && c <= '9')
			addr = addr << 4 | (c - '0');
		else if (c >= 'a' && c <= 'f')
			addr = addr << 4 | (c - 'a' + 10);
		else
			return false;
	}
	*ret = addr;
	return s[DIGITS] == ' ';
}

/* A line is an address, a letter and a name, then perhaps a module; @end is where its line
 * break was. Only functions in the upper half are taken. False when memory runs out.
 */
static bool add_line(struct shstk_kernel_functions *functions, char *line, char *end)
{
	struct shstk_perfmap_entry *more;
	uint64_t addr;
	char *name = line + DIGITS + 3;

	if (end <= name || !parse_address(line, &addr) || !(addr >> 63) ||
	    !strchr("tTwW", line[DIGITS + 1]))
		return true;
	more = shstk_grow(functions->v, functions->nr, &functions->max, sizeof(*more));
	if (!more)
		return false;
	*end = '\0';
	name[strcspn(name, " \t")] = '\0';
	functions->v = more;
	more[functions->nr++] = (struct shstk_perfmap_entry){ .start = addr, .name = name };
	return true;
}

static void sort(struct shstk_kernel_functions *functions)
{
	struct shstk_perfmap_entry *v = functions->v;
	size_t i;

	/* The kernel itself is in order; modules are behind it, in the order of loading. */
	for (i = 1; i < functions->nr && v[i - 1].start <= v[i].start; i++)
		;
	if (i < functions->nr)
		qsort(v, functions->nr, sizeof(*v), by_address);
	for (i = 0; i < functions->nr; i++)
		v[i].end = i + 1 < functions->nr ? v[i + 1].start : v[i].start + LAST_SIZE;
}

/* The whole of a file whose size is not known. Returns its size; 0: nothing could be read. */
static size_t read_all(int fd, char **ret)
{
	size_t size = 0, room = 0;
	char *text = NULL, *more;
	ssize_t n;

	for (;;) {
		if (size == room) {
			room = room ? 2 * room : TEXT_FIRST;
			more = room <= TEXT_MAX ? realloc(text, room) : NULL;
			if (!more)
				break;
			text = more;
		}
		n = read(fd, text + size, room - size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		size += n;
	}
	*ret = text;
	return size;
}

static struct shstk_kernel_functions *read_functions(void)
{
	struct shstk_kernel_functions *functions = calloc(1, sizeof(*functions));
	int fd = functions ? open("/proc/kallsyms", O_RDONLY | O_CLOEXEC) : -1;
	char *line, *end;
	size_t size;

	if (fd < 0)
		return functions;
	size = read_all(fd, &functions->text);
	close(fd);
	line = functions->text;
	while (size && (end = memchr(line, '\n', functions->text + size - line))) {
		if (!add_line(functions, line, end))
			break;
		line = end + 1;
	}
	sort(functions);
	return functions;
}

void shstk_kernel_destroy(struct shstk_kernel_functions *functions)
{
	if (!functions)
		return;
	free(functions->text);
	free(functions->v);
	free(functions);
}

const struct shstk_perfmap_entry *shstk_kernel_find(const struct shstk_kernel_functions *functions,
						    uint64_t addr)
{
	size_t lo = 0, hi = functions->nr, mid;

	/* The last one that starts at or below the address. */
	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (functions->v[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && addr < functions->v[lo - 1].end ? &functions->v[lo - 1] : NULL;
}

const struct shstk_symmap *shstk_kernel_map(struct shstk_symbols *symbols)
{
	struct shstk_symproc *view = symbols->kernel;

	if (!view) {
		if (shstk_symproc_create(symbols, 0, &view))
			return NULL;
		symbols->kernel = view;
		view->none.pub.path = "[kernel.kallsyms]";
		view->none.pub.name = "[kernel]";
		view->functions = read_functions();
	}
	return &view->none.pub;
}
