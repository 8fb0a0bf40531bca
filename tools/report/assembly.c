// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * assembly.c - the instructions of a function, as assembly.h describes.
 *
 * Addresses of all mappings of one file are translated to addresses of the file, and those of one
 * function in it are printed together: an inlined function is in many others.
 */
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libshstk/regular.h"
#include "libshstk/symbol/elf_file.h"
#include "tools/report/assembly.h"
#include "tools/elf/image.h"
#include "tools/elf/symbols.h"
#include "tools/report/objdump.h"
#include "tools/report/printable_line.h"
#include "tools/shstk.h"

#define MOST_RANGES 16 /* functions of a file that are shown */
#define MOST_SIZE (16u << 20) /* bytes of a function before its samples */
#define BEHIND 64 /* bytes behind the last sample that are shown */
#define WHOLE 4096 /* a function of so many bytes is shown whole */
#define NEAR 64 /* in others, what is so many bytes around samples */

/**
 * struct piece - samples at one address
 * @address: address in the file.
 * @start: address in the file at which the function begins, or 0 if it is not known.
 * @self: as in &struct spot.
 * @total: as in &struct spot.
 */
struct piece {
	uint64_t address;
	uint64_t start;
	int64_t self;
	int64_t total;
};

/**
 * struct sampled_range - the samples in one function of a file
 * @pieces: the samples, by address.
 * @nr: number of @pieces.
 * @total: sum of their totals.
 */
struct sampled_range {
	const struct piece *pieces;
	size_t nr;
	int64_t total;
};

/**
 * struct listing - instructions that are being printed
 * @spots: of the function.
 * @room: number of columns for an instruction.
 * @range: the samples.
 * @next: index of the first sample that was not printed yet.
 * @near: bytes around samples that are shown.
 * @waits: there is an instruction that is printed when the address of the next one is known.
 * @address: address of that instruction.
 * @text: its text.
 * @gap: instructions were left out before it.
 * @self: values of samples that are in no instruction.
 * @total: values of samples that are in no instruction.
 */
struct listing {
	const struct spots *spots;
	size_t room;
	const struct sampled_range *range;
	size_t next;
	uint64_t near;
	bool waits;
	uint64_t address;
	char text[1024];
	bool gap;
	int64_t self;
	int64_t total;
};

/**
 * struct disassembled_file - a file that is disassembled
 * @path: its path.
 * @fd: its descriptor.
 * @elf: the file as libelf reads it, or NULL if it is no ELF file.
 */
struct disassembled_file {
	const char *path;
	int fd;
	Elf *elf;
};

/* ---- Printing ---- */

static bool is_near(const struct listing *l)
{
	const struct piece *pieces = l->range->pieces;

	return (l->next && l->address - pieces[l->next - 1].address <= l->near) ||
	       (l->next < l->range->nr && pieces[l->next].address - l->address <= l->near);
}

static void put(struct listing *l, int64_t self, int64_t total, bool sampled)
{
	if (!sampled && !is_near(l)) {
		l->gap = true;
		return;
	}
	if (l->gap)
		printf("%*s\n", SPOTS_COLUMNS + 3, "...");
	l->gap = false;
	spots_put(l->spots, self, total);
	printf("%8llx  ", (unsigned long long)l->address);
	printable_line(l->text, strlen(l->text), l->room);
}

/* Prints the instruction that waits, which ends before @end, with its samples. */
static void flush(struct listing *l, uint64_t end)
{
	const size_t first = l->next;
	int64_t self = 0, total = 0;

	for (; l->next < l->range->nr && l->range->pieces[l->next].address < end; l->next++) {
		const struct piece *piece = &l->range->pieces[l->next];
		const bool inside = l->waits && piece->address >= l->address;
		int64_t *own = inside ? &self : &l->self, *sum = inside ? &total : &l->total;

		*own = shstk_add(*own, piece->self);
		*sum = shstk_add(*sum, piece->total);
	}
	if (l->waits)
		put(l, self, total, l->next > first);
	l->waits = false;
}

static bool take(void *arg, const struct objdump_line *line)
{
	struct listing *l = arg;

	flush(l, line->address);
	/* The function ends where the next one begins. */
	if (line->function)
		return l->next < l->range->nr;
	l->waits = true;
	l->address = line->address;
	snprintf(l->text, sizeof(l->text), "%s", line->text);
	return true;
}

/* Prints a row that stands for samples whose instructions are not shown. */
static void put_rest(const struct spots *spots, int64_t self, int64_t total, const char *what)
{
	spots_put(spots, self, total);
	printf("%8s  %s\n", "", what);
}

/* A function whose end is looked for in symbol tables; @end is 0 as long as it is not known. */
struct function_extent {
	uint64_t start;
	uint64_t end;
};

static int take_extent(void *arg, GElf_Word table, const GElf_Sym *sym, const char *name)
{
	struct function_extent *extent = arg;

	(void)table, (void)name;
	if (sym->st_value == extent->start && GELF_ST_TYPE(sym->st_info) == STT_FUNC)
		extent->end = sym->st_value + sym->st_size;
	return 0;
}

/*
 * Returns the address behind the function of a range. Where no symbol tells it, it is an address a
 * little behind the last sample.
 */
static uint64_t range_end(const struct disassembled_file *file, const struct sampled_range *range)
{
	const struct piece *last = range->pieces + range->nr - 1;
	struct function_extent extent = { .start = range->pieces->start };

	if (extent.start && file->elf)
		symbols_walk(file->elf, take_extent, &extent);
	if (extent.end > last->address && extent.end - last->address <= MOST_SIZE)
		return extent.end;
	return last->address + BEHIND;
}

static int put_range(const struct spots *spots, size_t room, const struct disassembled_file *file,
		     const struct sampled_range *range)
{
	const struct piece *first = range->pieces;
	const uint64_t start = first->start ? first->start : first->address;
	const uint64_t stop = range_end(file, range);
	struct listing l = { .spots = spots, .room = room, .range = range };
	int err;

	printf("%s: instructions from 0x%llx on\n", file->path, (unsigned long long)start);
	printf("%10s %6s %10s %8s  %s\n", "self", "%", "total", "address", "instruction");
	l.near = stop - start > WHOLE ? NEAR : UINT64_MAX;
	err = objdump_run(file->fd, start, stop, take, &l);
	if (l.waits)
		flush(&l, l.address + OBJDUMP_LONGEST);
	flush(&l, UINT64_MAX);
	if (l.self || l.total)
		put_rest(spots, l.self, l.total, "[not disassembled]");
	if (err == -ENOENT)
		complain("objdump is not there: install binutils");
	else if (err)
		complain("objdump can't disassemble %s", file->path);
	return err;
}

/* ---- Files ---- */

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* Orders mappings so that those of one file, with one build id, follow each other. */
static int by_file(const struct shstk_symmap *a, const struct shstk_symmap *b)
{
	int ret = strcmp(a->path, b->path);

	if (!ret)
		ret = compare(a->build_id_size, b->build_id_size);
	return !ret && a->build_id_size ? memcmp(a->build_id, b->build_id, a->build_id_size) : ret;
}

static int by_place(const struct spot *a, const struct spot *b)
{
	int ret = by_file(a->key.map, b->key.map);

	if (!ret)
		ret = compare((uintptr_t)a->key.map, (uintptr_t)b->key.map);
	return ret ? ret : compare(a->key.number, b->key.number);
}

/* Tells whether the file is the one that was mapped. */
static bool is_same(const struct shstk_symmap *map, int fd)
{
	struct build_id is, was = { .size = map->build_id_size };
	char text[129], other[129];

	if (!was.size) {
		complain("the profile has no build id of %s, which may be another file by now",
			 map->path);
		return true;
	}
	if (was.size > sizeof(was.data))
		was.size = sizeof(was.data);
	memcpy(was.data, map->build_id, was.size);
	build_id_of_file(fd, &is);
	if (is.size == map->build_id_size && !memcmp(is.data, was.data, is.size))
		return true;
	complain(
		"%s is not disassembled, as it is not the file that was mapped: its build id is %s, not %s",
		map->path, build_id_text(&is, text), build_id_text(&was, other));
	return false;
}

/* Opens the file of a mapping. Returns a descriptor, or -1 after a message. */
static int open_file(const struct shstk_symmap *map)
{
	int fd;

	if (map->kind != SHSTK_SYMMAP_FILE) {
		complain("code of %s can't be disassembled: it is in no file", map->name);
		return -1;
	}
	fd = regular_open(map->path);
	if (fd < 0) {
		complain("%s can't be disassembled: %s", map->path,
			 fd == -EINVAL ? "it is not a regular file" : strerror(-fd));
		return -1;
	}
	if (is_same(map, fd))
		return fd;
	close(fd);
	return -1;
}

/*
 * Returns a process of the store that has the mapping, in which functions can be looked up; NULL
 * when memory runs out.
 */
static struct shstk_symproc *make_process(const struct spots *spots, const struct shstk_symmap *map)
{
	const struct shstk_symmap_info info = {
		.start = map->start,
		.end = map->end,
		.offset = map->offset,
		.path = map->path,
		.build_id = map->build_id,
		.build_id_size = map->build_id_size,
	};
	struct shstk_symproc *proc;

	if (shstk_symproc_create_past(spots->profile->symbols, 0, &proc))
		return NULL;
	return shstk_symproc_add(proc, &info) ? NULL : proc;
}

/* Returns the address in the process at which the function of @address begins; 0: not known. */
static uint64_t function_start(struct shstk_symproc *proc, uint64_t address)
{
	const struct shstk_symbol *symbol =
		proc ? shstk_symproc_lookup(proc, address, SHSTK_SYMADDR_PC) : NULL;

	if (!symbol || symbol->start > address || address - symbol->start > MOST_SIZE)
		return 0;
	return symbol->start;
}

static int by_address(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;
	int ret = compare(x->start, y->start);

	return ret ? ret : compare(x->address, y->address);
}

static int by_total(const void *a, const void *b)
{
	const struct sampled_range *x = a, *y = b;

	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return compare(x->pieces->address, y->pieces->address);
}

/*
 * Translates the addresses of @nr spots to addresses of the file. Returns how many of them are in
 * the file; @left receives the values of the others.
 */
static size_t translate(const struct spots *spots, const struct spot *first, size_t nr, Elf *elf,
			struct piece *ret, struct piece *left)
{
	const struct shstk_symmap *map = NULL;
	struct shstk_symproc *proc = NULL;
	bool known = false;
	uint64_t bias = 0;
	size_t n = 0;

	for (const struct spot *spot = first; nr--; spot = spot->hh.next) {
		struct piece piece = { .self = spot->self, .total = spot->total };

		if (map != spot->key.map) {
			map = spot->key.map;
			known = elf && symbols_bias(elf, map->start, map->offset, &bias);
			proc = known ? make_process(spots, map) : NULL;
		}
		if (!known) {
			left->self = shstk_add(left->self, spot->self);
			left->total = shstk_add(left->total, spot->total);
			continue;
		}
		piece.start = function_start(proc, spot->key.number);
		piece.start = piece.start ? piece.start - bias : 0;
		piece.address = spot->key.number - bias;
		ret[n++] = piece;
	}
	return n;
}

/* Adds up the samples at equal addresses. Returns the number of addresses. */
static size_t merge(struct piece *pieces, size_t nr)
{
	size_t n = 0;

	qsort(pieces, nr, sizeof(*pieces), by_address);
	for (size_t i = 0; i < nr; i++) {
		if (n && !by_address(&pieces[n - 1], &pieces[i])) {
			pieces[n - 1].self = shstk_add(pieces[n - 1].self, pieces[i].self);
			pieces[n - 1].total = shstk_add(pieces[n - 1].total, pieces[i].total);
		} else {
			pieces[n++] = pieces[i];
		}
	}
	return n;
}

/*
 * Splits addresses by functions, those with the highest values first. Where no function is known,
 * an address far behind the one before begins a new range. Returns the number of ranges.
 */
static size_t split(const struct piece *pieces, size_t nr, struct sampled_range *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < nr; i++) {
		const bool next =
			!i || pieces[i].start != pieces[i - 1].start ||
			(!pieces[i].start && pieces[i].address - pieces[i - 1].address > BEHIND);

		if (next)
			ret[n++] = (struct sampled_range){ .pieces = pieces + i };
		ret[n - 1].nr++;
		ret[n - 1].total = shstk_add(ret[n - 1].total, pieces[i].total);
	}
	qsort(ret, n, sizeof(*ret), by_total);
	return n;
}

static void leave_out(struct piece *left, const struct sampled_range *range)
{
	for (size_t i = 0; i < range->nr; i++) {
		left->self = shstk_add(left->self, range->pieces[i].self);
		left->total = shstk_add(left->total, range->pieces[i].total);
	}
}

/* Prints what @nr spots have of a file that is open. */
static int put_file(const struct spots *spots, size_t room, const struct spot *first, size_t nr,
		    int fd)
{
	const struct disassembled_file file = {
		.path = first->key.map->path,
		.fd = fd,
		.elf = shstk_elf_begin(fd),
	};
	struct piece *pieces = calloc(nr, sizeof(*pieces)), left = { 0 };
	struct sampled_range *ranges = calloc(nr, sizeof(*ranges));
	size_t n = 0;
	int err = 0;

	if (pieces && ranges) {
		n = merge(pieces, translate(spots, first, nr, file.elf, pieces, &left));
		n = split(pieces, n, ranges);
	} else {
		complain("%s", strerror(ENOMEM));
		err = -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		if (i < MOST_RANGES && !err)
			err = put_range(spots, room, &file, &ranges[i]);
		else
			leave_out(&left, &ranges[i]);
	}
	if (left.self || left.total)
		put_rest(spots, left.self, left.total, "[elsewhere]");
	free(pieces);
	free(ranges);
	elf_end(file.elf);
	return err;
}

/* Returns the number of spots from @first on that are in the same file. */
static size_t same_file(const struct spot *first)
{
	size_t nr = 1;

	for (const struct spot *spot = first->hh.next; spot; spot = spot->hh.next, nr++)
		if (by_file(first->key.map, spot->key.map))
			break;
	return nr;
}

int assembly_print(struct spots *spots, size_t room)
{
	const struct spot *spot;
	int status = EXIT_OK;

	for (spot = spots->addresses; spot; spot = spot->hh.next)
		if (spot->key.map->kind == SHSTK_SYMMAP_FILE)
			shstk_symmap_build_id(spots->profile->symbols, spot->key.map);
	HASH_SORT(spots->addresses, by_place);
	for (spot = spots->addresses; spot;) {
		const size_t nr = same_file(spot);
		int fd = open_file(spot->key.map);

		if (fd < 0 || put_file(spots, room, spot, nr, fd))
			status = EXIT_FAILED;
		if (fd >= 0)
			close(fd);
		for (size_t i = 0; i < nr; i++)
			spot = spot->hh.next;
	}
	return status;
}
