/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kept_pages.h - reads memory of a program that stands still page by page, and keeps pages. */
#ifndef TOOLS_TRACE_KEPT_PAGES_H
#define TOOLS_TRACE_KEPT_PAGES_H

#include "libshstk/shstk.h"

struct kept_page;

/**
 * struct kept_pages - pages of a program's memory
 * @read: reads the memory; must allow reads of 4096 bytes.
 * @arg: first argument of @read.
 * @pages: the pages.
 */
struct kept_pages {
	shstk_read_fn read;
	void *arg;
	struct kept_page *pages;
};

/* Begins with no page. Returns 0 or -ENOMEM. */
int kept_pages_init(struct kept_pages *k, shstk_read_fn read, void *arg);
void kept_pages_deinit(struct kept_pages *k);

/* Forgets all pages, as the program has run. */
void kept_pages_forget(struct kept_pages *k);

/* Reads memory, all or nothing: a shstk_read_fn. @arg is struct kept_pages. */
int kept_pages_read(void *arg, uint64_t addr, void *buf, size_t len);

#endif
