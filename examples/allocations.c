// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An allocator hook: counts what each place of a program allocates by malloc().
 *
 *   cc -O2 -shared -fPIC -o allocations.so allocations.c \
 *           $(pkg-config --cflags --libs libshstk-symbolize libshstk)
 *   LD_PRELOAD=./allocations.so COMMAND
 *
 * When the program ends, it prints the five stacks that allocated the most bytes. It prints them to
 * the file that was standard error when the program began, because many programs close standard
 * error. It works with glibc only, whose malloc() has a second name, __libc_malloc().
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <shstk_symbolize.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DEPTH 64
#define PLACES 16384
#define SHOWN 5

static struct place {
	_Atomic uint64_t id;
	_Atomic uint64_t bytes;
	_Atomic uint64_t calls;
	_Atomic int depth; /* Set last; 0 while @pcs is incomplete. */
	uint64_t pcs[DEPTH];
} places[PLACES];

/* Set before the table is read; nothing is counted from then on. */
static atomic_int ended;

static int report_fd;

void *__libc_malloc(size_t size);

/*
 * Returns the place with identity @id, which is made if it is new. Returns NULL if the table is
 * full.
 */
static struct place *find(uint64_t id, const uint64_t *pcs, int depth)
{
	for (unsigned int i = 0; i < 64; i++) {
		struct place *at = &places[(id + i) % PLACES];
		uint64_t none = 0;

		if (atomic_compare_exchange_strong(&at->id, &none, id)) {
			for (int d = 0; d < depth; d++)
				at->pcs[d] = pcs[d];
			at->depth = depth;
			return at;
		}
		if (none == id)
			return at;
	}
	return NULL;
}

void *malloc(size_t size)
{
	uint64_t pcs[DEPTH], id;
	struct place *place;
	int depth;

	if (ended)
		return __libc_malloc(size);
	/* A capture takes no lock and no heap memory, so malloc() may call it. */
	depth = shstk_capture_id(pcs, DEPTH, NULL, &id);
	place = depth > 0 && id ? find(id, pcs, depth) : NULL;
	if (place) {
		place->bytes += size;
		place->calls++;
	}
	return __libc_malloc(size);
}

static int more_bytes(const void *one, const void *other)
{
	uint64_t a = ((const struct place *)one)->bytes, b = ((const struct place *)other)->bytes;

	return (a < b) - (a > b);
}

__attribute__((constructor)) static void begin(void)
{
	report_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100);
}

__attribute__((destructor)) static void report(void)
{
	struct shstk_symbolizer *names;
	struct shstk_name name;

	ended = 1;
	if (shstk_symbolizer_create(0, &names))
		return;
	qsort(places, PLACES, sizeof(*places), more_bytes);
	for (struct place *at = places; at < places + SHOWN && at->depth; at++) {
		dprintf(report_fd, "%lu bytes in %lu calls:\n", (unsigned long)at->bytes,
			(unsigned long)at->calls);
		/* The innermost entry is malloc() above, so it is left out. */
		for (int d = 1; d < at->depth; d++) {
			shstk_symbolize(names, at->pcs[d], 0, &name, 1, sizeof(name));
			dprintf(report_fd, "    %s\n", name.function);
		}
	}
	shstk_symbolizer_destroy(names);
}
