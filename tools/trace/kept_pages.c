// SPDX-License-Identifier: GPL-2.0-or-later
/* kept_pages.c - reads memory page by page, and keeps pages. See kept_pages.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/trace/kept_pages.h"

#define PAGE 4096ull
#define PAGES 256 /* number of pages that are kept */

struct kept_page {
	uint64_t addr; /* the page's address plus 1 if @data is valid, or 0 */
	uint8_t data[PAGE];
};

int kept_pages_init(struct kept_pages *k, shstk_read_fn read, void *arg)
{
	*k = (struct kept_pages){ read, arg, calloc(PAGES, sizeof(*k->pages)) };
	return k->pages ? 0 : -ENOMEM;
}

void kept_pages_deinit(struct kept_pages *k)
{
	free(k->pages);
	k->pages = NULL;
}

void kept_pages_forget(struct kept_pages *k)
{
	for (size_t i = 0; i < PAGES; i++)
		k->pages[i].addr = 0;
}

int kept_pages_read(void *arg, uint64_t addr, void *buf, size_t len)
{
	const struct kept_pages *k = arg;
	const uint64_t base = addr & -PAGE;
	struct kept_page *p = &k->pages[base / PAGE % PAGES];

	if (addr - base + len > PAGE)
		return k->read(k->arg, addr, buf, len);
	if (p->addr != (base | 1)) {
		p->addr = 0;
		if (k->read(k->arg, base, p->data, PAGE))
			return k->read(k->arg, addr, buf, len);
		p->addr = base | 1;
	}
	memcpy(buf, p->data + (addr - base), len);
	return 0;
}
