// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * memory.c - the program's memory, cached between stops.
 *
 * Whole pages are read by process_vm_readv(2). A word that an instruction of
 * the program may have written since is marked stale and makes the next read
 * of it fetch the page again; after anything whose writes are not known (system
 * calls, signals, string instructions, code that ran without being stepped)
 * the cache is emptied.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "memory.h"

#define PAGE 4096ul
#define SLOTS 256

struct page {
	u64 addr; /* address of the page, plus one if the page is valid */
	bool any_stale;
	uint8_t stale[PAGE / 8 / 8];
	uint8_t bytes[PAGE];
};

struct memory {
	pid_t pid;
	struct page pages[SLOTS];
};

struct memory *memory_create(pid_t pid)
{
	struct memory *m = calloc(1, sizeof(*m));

	if (m)
		m->pid = pid;
	return m;
}

void memory_destroy(struct memory *m)
{
	free(m);
}

void memory_flush(struct memory *m)
{
	for (int i = 0; i < SLOTS; i++)
		m->pages[i].addr = 0;
}

static struct page *slot_of(struct memory *m, u64 page)
{
	return &m->pages[(page / PAGE) % SLOTS];
}

void memory_written(struct memory *m, u64 addr, size_t len)
{
	for (u64 word = addr & ~7ul; word < addr + len; word += 8) {
		struct page *p = slot_of(m, word & ~(PAGE - 1));
		unsigned int bit = word % PAGE / 8;

		if (p->addr != (word & ~(PAGE - 1)) + 1)
			continue;
		p->stale[bit / 8] |= 1 << bit % 8;
		p->any_stale = true;
	}
}

static bool is_stale(const struct page *p, unsigned int from, unsigned int len)
{
	if (!p->any_stale)
		return false;
	for (unsigned int bit = from / 8; bit <= (from + len - 1) / 8; bit++)
		if (p->stale[bit / 8] & 1 << bit % 8)
			return true;
	return false;
}

static int fill(struct memory *m, struct page *p, u64 page)
{
	struct iovec local = { p->bytes, PAGE };
	struct iovec remote = { (void *)page, PAGE };

	p->addr = 0;
	if (process_vm_readv(m->pid, &local, 1, &remote, 1, 0) != (ssize_t)PAGE)
		return -EFAULT;
	p->addr = page + 1;
	p->any_stale = false;
	memset(p->stale, 0, sizeof(p->stale));
	return 0;
}

/**
 * memory_read() - read the program's memory; a shstk_read_fn
 * @memory: struct memory.
 * @addr: address there.
 * @buf: receives the bytes.
 * @len: bytes, any number.
 *
 * Return: 0 or -EFAULT.
 */
int memory_read(void *memory, u64 addr, void *buf, size_t len)
{
	struct memory *m = memory;
	uint8_t *to = buf;

	while (len) {
		u64 page = addr & ~(PAGE - 1);
		size_t at = addr - page;
		size_t part = len < PAGE - at ? len : PAGE - at;
		struct page *p = slot_of(m, page);

		if ((p->addr != page + 1 || is_stale(p, at, part)) && fill(m, p, page))
			return -EFAULT;
		memcpy(to, p->bytes + at, part);
		to += part;
		addr += part;
		len -= part;
	}
	return 0;
}
