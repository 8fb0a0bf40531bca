// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * kernel.c - names of the running kernel's functions: the kernel is asked for each (kernel_ask.c),
 * or they are read from /proc/kallsyms.
 *
 * All processes share them, so they belong to a view of their own, made when the first address of
 * the kernel is met. A kernel that hides its addresses from this user shows them as zero; then
 * there are no names.
 *
 * There are more than a hundred thousand functions, of which a profile shows a few dozen, and the
 * kernel takes longer to write a line than this file takes to read one. So /proc/kallsyms is read
 * only as far as addresses are asked for: the kernel's own functions come first, in order of their
 * addresses; functions of modules and of BPF come behind, in no order. Only the names of functions
 * are kept, one after the other, which is less than half of the text: memory that is touched for
 * the first time costs most here.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store.h"

#define NAMES_FIRST (4u << 20) /* room that the names of most kernels fit into */
#define NAMES_MAX (512u << 20)
#define PIECE (64u << 10) /* bytes that are read at a time */
#define LAST_SIZE 4096
#define DIGITS 16 /* hexadecimal digits of an address */

struct kernel_function {
	uint64_t addr;
	uint32_t name; /* offset among the names */
};

/**
 * struct shstk_kernel_functions - functions of the kernel
 * @asker: asks the kernel for a function, or NULL: there is only the file.
 * @fd: descriptor of /proc/kallsyms; -1: it was read to its end.
 * @names: the end of the line of each function, from its name on, with a zero after each.
 * @size: bytes in @names.
 * @room: bytes that @names has room for.
 * @v: the functions; each one reaches up to the next one.
 * @nr: number of elements of @v.
 * @max: number of elements that @v has room for.
 * @ordered: @v is in the order of addresses so far.
 * @found: the entry that was handed out last.
 * @kept: bytes at the start of @piece, of a line that is not complete yet.
 * @piece: the text that was read last.
 */
struct shstk_kernel_functions {
	struct shstk_kernel_asker *asker;
	int fd;
	char *names;
	size_t size;
	size_t room;
	struct kernel_function *v;
	size_t nr;
	size_t max;
	bool ordered;
	struct shstk_perfmap_entry found;
	size_t kept;
	char piece[PIECE];
};

/*
 * Orders functions by address. Of functions with one address the first one in the file comes first:
 * it names the address, as in the kernel's own traces.
 */
static int by_address(const void *a, const void *b)
{
	const struct kernel_function *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

/*
 * Returns the value of eight hexadecimal digits, read at once: the first one is in the lowest byte.
 */
static uint64_t parse_digits(const char *s)
{
	uint64_t v;

	memcpy(&v, s, sizeof(v));
	/* The low bits of a letter count from 1, and only letters have this bit. */
	v = (v & 0x0f0f0f0f0f0f0f0f) + 9 * (v >> 6 & 0x0101010101010101);
	v = (v << 4 | v >> 8) & 0x00ff00ff00ff00ff;
	v = (v << 8 | v >> 16) & 0x0000ffff0000ffff;
	return (v << 16 | v >> 32) & 0xffffffff;
}

static bool is_function(char type)
{
	return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

/*
 * Adds the function of a line: an address, a letter and a name, then perhaps a tab and a module.
 * @end points to its line break. Only functions in the upper half of the address space are taken.
 * The caller has made room for the name. Returns false when memory runs out.
 */
static bool add_line(struct shstk_kernel_functions *functions, const char *line, const char *end)
{
	const char *name = line + DIGITS + 3;
	struct kernel_function *more;
	uint64_t addr;

	if (end <= name || line[DIGITS] != ' ' || !is_function(line[DIGITS + 1]))
		return true;
	addr = parse_digits(line) << 32 | parse_digits(line + DIGITS / 2);
	if (!(addr >> 63))
		return true;
	more = shstk_grow(functions->v, functions->nr, &functions->max, sizeof(*more));
	if (!more)
		return false;
	functions->v = more;
	if (functions->nr && addr < more[functions->nr - 1].addr)
		functions->ordered = false;
	more[functions->nr++] = (struct kernel_function){ addr, functions->size };
	memcpy(functions->names + functions->size, name, end - name);
	functions->size += end - name;
	functions->names[functions->size++] = '\0';
	return true;
}

/*
 * Adds the lines of the piece, which has @size bytes; an incomplete last line is kept until the
 * rest is read. Returns false when memory runs out.
 */
static bool parse_lines(struct shstk_kernel_functions *functions, size_t size)
{
	const char *line = functions->piece, *stop = line + size, *end;

	while ((end = memchr(line, '\n', stop - line))) {
		if (!add_line(functions, line, end))
			return false;
		line = end + 1;
	}
	functions->kept = stop - line;
	memmove(functions->piece, line, functions->kept);
	return true;
}

/* Makes room for all names of a piece. Returns false when memory runs out. */
static bool make_room(struct shstk_kernel_functions *functions)
{
	size_t room = functions->room ? 2 * functions->room : NAMES_FIRST;
	char *more;

	if (functions->room - functions->size >= PIECE)
		return true;
	more = room <= NAMES_MAX ? realloc(functions->names, room) : NULL;
	if (!more)
		return false;
	functions->names = more;
	functions->room = room;
	return true;
}

/* Reads one more piece. Returns false at the end, and when memory runs out. */
static bool read_piece(struct shstk_kernel_functions *functions)
{
	size_t size = functions->kept;
	ssize_t n = 0;

	if (!make_room(functions))
		return false;
	/* The kernel returns at most a page at a time. */
	while (size < PIECE) {
		n = read(functions->fd, functions->piece + size, PIECE - size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		size += n;
	}
	return size > functions->kept && parse_lines(functions, size) && n > 0;
}

/* Returns whether all functions that may cover an address have been read. */
static bool reaches(const struct shstk_kernel_functions *functions, uint64_t addr)
{
	const struct kernel_function *v = functions->v;

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
	functions->asker = shstk_kernel_asker_create();
	functions->fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	functions->ordered = true;
	return functions;
}

void shstk_kernel_destroy(struct shstk_kernel_functions *functions)
{
	if (!functions)
		return;
	shstk_kernel_asker_destroy(functions->asker);
	if (functions->fd >= 0)
		close(functions->fd);
	free(functions->names);
	free(functions->v);
	free(functions);
}

/* Finds the function at an address in the file. Returns NULL if there is none. */
static const struct shstk_perfmap_entry *find(struct shstk_kernel_functions *functions,
					      uint64_t addr)
{
	const struct kernel_function *v;
	size_t lo = 0, hi, mid, i;
	char *name;

	read_until(functions, addr);
	v = functions->v;
	/* Find the first function that starts above the address; the one before it is wanted. */
	for (hi = functions->nr; lo < hi;) {
		mid = lo + (hi - lo) / 2;
		if (v[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return NULL;
	for (i = lo - 1; i && v[i - 1].addr == v[i].addr;)
		i--;
	name = functions->names + v[i].name;
	name[strcspn(name, " \t")] = '\0';
	functions->found = (struct shstk_perfmap_entry){
		.start = v[i].addr,
		.end = lo < functions->nr ? v[lo].addr : v[i].addr + LAST_SIZE,
		.name = name,
	};
	return addr < functions->found.end ? &functions->found : NULL;
}

const struct shstk_perfmap_entry *shstk_kernel_find(struct shstk_kernel_functions *functions,
						    uint64_t addr)
{
	if (functions->asker && shstk_kernel_ask(functions->asker, addr, &functions->found))
		return &functions->found;
	return find(functions, addr);
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
