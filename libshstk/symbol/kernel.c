// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * kernel.c - names of the running kernel's functions, from /proc/kallsyms.
 *
 * All processes share them, so they belong to a view of their own, made when an
 * address of the kernel is met first. A kernel that hides its addresses from us
 * shows them as zero; then there are no names.
 *
 * There are more than a hundred thousand functions, of which a profile shows a few dozen, and
 * the kernel takes longer to write a line than it takes to read one. So the text is kept as it
 * was read, the functions point into it, and it is read only as far as addresses are asked
 * for: the kernel's own functions come first, in order; those of modules and of BPF come
 * behind, in no order.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store.h"

#define TEXT_FIRST (8u << 20) /* room that the text of most kernels fits into */
#define TEXT_MAX (512u << 20)
#define PIECE (64u << 10) /* read at a time */
#define LAST_SIZE 4096
#define DIGITS 16 /* of an address */

struct function {
	uint64_t addr;
	uint32_t name; /* place in the text */
};

/**
 * struct shstk_kernel_functions - functions of the kernel
 * @fd: the file; -1: it was read to its end.
 * @text: what was read, @size bytes, room for @room.
 * @parsed: bytes of @text whose lines were looked at.
 * @v: the functions, each reaching up to the next one; @nr of them, room for @max.
 * @ordered: @v is in the order of addresses so far.
 * @found: what was handed out last.
 */
struct shstk_kernel_functions {
	int fd;
	char *text;
	size_t size;
	size_t room;
	size_t parsed;
	struct function *v;
	size_t nr;
	size_t max;
	bool ordered;
	struct shstk_perfmap_entry found;
};

/* Of functions with one address the last one in the text names it. */
static int by_address(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
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
	char *name = line + DIGITS + 3;
	struct function *more;
	uint64_t addr;

	if (end <= name || !parse_address(line, &addr) || !(addr >> 63) ||
	    !strchr("tTwW", line[DIGITS + 1]))
		return true;
	more = shstk_grow(functions->v, functions->nr, &functions->max, sizeof(*more));
	if (!more)
		return false;
	*end = '\0';
	name[strcspn(name, " \t")] = '\0';
	functions->v = more;
	if (functions->nr && addr < more[functions->nr - 1].addr)
		functions->ordered = false;
	more[functions->nr++] = (struct function){ addr, name - functions->text };
	return true;
}

static bool parse_lines(struct shstk_kernel_functions *functions)
{
	char *line = functions->text + functions->parsed, *end;

	while ((end = memchr(line, '\n', functions->text + functions->size - line))) {
		if (!add_line(functions, line, end))
			return false;
		line = end + 1;
	}
	functions->parsed = line - functions->text;
	return true;
}

static bool make_room(struct shstk_kernel_functions *functions)
{
	size_t room = functions->room ? 2 * functions->room : TEXT_FIRST;
	char *more;

	if (functions->room - functions->size >= PIECE)
		return true;
	more = room <= TEXT_MAX ? realloc(functions->text, room) : NULL;
	if (!more)
		return false;
	functions->text = more;
	functions->room = room;
	return true;
}

/* One more piece. False: there is none, or no memory for it. */
static bool read_piece(struct shstk_kernel_functions *functions)
{
	const size_t until = functions->size + PIECE;
	ssize_t n = 0;

	if (!make_room(functions))
		return false;
	/* The kernel gives a page at a time. */
	while (functions->size < until) {
		n = read(functions->fd, functions->text + functions->size, until - functions->size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		functions->size += n;
	}
	return parse_lines(functions) && n > 0;
}

/* Are all functions known that may be at an address? */
static bool reaches(const struct shstk_kernel_functions *functions, uint64_t addr)
{
	const struct function *v = functions->v;

	return functions->fd < 0 || (functions->ordered && functions->nr && v[0].addr <= addr &&
				     addr < v[functions->nr - 1].addr);
}

static void read_until(struct shstk_kernel_functions *functions, uint64_t addr)
{
	while (!reaches(functions, addr)) {
		if (read_piece(functions))
			continue;
		close(functions->fd);
		functions->fd = -1;
		if (!functions->ordered)
			qsort(functions->v, functions->nr, sizeof(*functions->v), by_address);
	}
}

static struct shstk_kernel_functions *open_functions(void)
{
	struct shstk_kernel_functions *functions = calloc(1, sizeof(*functions));

	if (!functions)
		return NULL;
	functions->fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	functions->ordered = true;
	return functions;
}

void shstk_kernel_destroy(struct shstk_kernel_functions *functions)
{
	if (!functions)
		return;
	if (functions->fd >= 0)
		close(functions->fd);
	free(functions->text);
	free(functions->v);
	free(functions);
}

const struct shstk_perfmap_entry *shstk_kernel_find(struct shstk_kernel_functions *functions,
						    uint64_t addr)
{
	const struct function *v;
	size_t lo = 0, hi, mid;

	read_until(functions, addr);
	v = functions->v;
	/* The last one that starts at or below the address. */
	for (hi = functions->nr; lo < hi;) {
		mid = lo + (hi - lo) / 2;
		if (v[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return NULL;
	functions->found = (struct shstk_perfmap_entry){
		.start = v[lo - 1].addr,
		.end = lo < functions->nr ? v[lo].addr : v[lo - 1].addr + LAST_SIZE,
		.name = functions->text + v[lo - 1].name,
	};
	return addr < functions->found.end ? &functions->found : NULL;
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
		view->functions = open_functions();
	}
	return &view->none.pub;
}
