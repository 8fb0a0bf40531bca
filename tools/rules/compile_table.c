// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * compile_table.c - turns the list of rules into a table by pages of the file, in the format of
 * linux/shstk_rules.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/rules/compile_private.h"

static int compare_rules(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/*
 * Collects the distinct rules; SHSTK_RULE_NONE is the first. Returns their number, or 0 if memory
 * is short.
 */
static size_t distinct_rules(const struct rows *rows, uint64_t **ret)
{
	uint64_t *v = malloc((rows->n + 1) * sizeof(*v));
	size_t n = 0;

	if (!v)
		return 0;
	v[0] = SHSTK_RULE_NONE;
	for (size_t i = 0; i < rows->n; i++)
		v[i + 1] = rows->v[i].rule;
	qsort(v, rows->n + 1, sizeof(*v), compare_rules);
	for (size_t i = 0; i <= rows->n; i++)
		if (!n || v[n - 1] != v[i])
			v[n++] = v[i];
	*ret = v;
	return n;
}

/* Returns the number of a rule, which must be in the list. */
static uint32_t rule_number(const uint64_t *rules, size_t n, uint64_t rule)
{
	const uint64_t *p = bsearch(&rule, rules, n, sizeof(*rules), compare_rules);

	return (uint32_t)(p - rules);
}

/*
 * Finds the range of executable bytes of the file, in whole pages. Returns false if there are none
 * or too many.
 */
static bool text_range(const struct elf_image *img, uint64_t *base, uint64_t *pages)
{
	uint64_t lo = UINT64_MAX, hi = 0;
	const uint64_t mask = (1 << SHSTK_RULES_PAGE_SHIFT) - 1;

	for (unsigned int i = 0; i < img->nload; i++) {
		const struct load *l = &img->load[i];

		if (!l->exec || !l->filesz)
			continue;
		lo = l->offset < lo ? l->offset : lo;
		hi = l->offset + l->filesz > hi ? l->offset + l->filesz : hi;
	}
	if (hi <= lo || hi >> 62)
		return false;
	*base = lo & ~mask;
	*pages = (hi - *base + mask) >> SHSTK_RULES_PAGE_SHIFT;
	return *pages <= SHSTK_RULES_MAX_PAGES;
}

/*
 * Adds the bytes for which @row is valid, up to @end or to the end of its segment, to the totals of
 * @t.
 */
static void account(struct compiled_table *t, const struct elf_image *img, const struct row *row,
		    uint64_t end)
{
	if (row->rule == SHSTK_RULE_NONE)
		return;
	for (unsigned int i = 0; i < img->nload; i++) {
		const struct load *l = &img->load[i];

		if (l->exec && row->offset - l->offset < l->filesz && end > l->offset + l->filesz)
			end = l->offset + l->filesz;
	}
	t->described += end - row->offset;
	if (row->rule == SHSTK_RULE_CUT || row->rule == LOST_RULE(img->m))
		t->cut += end - row->offset;
}

/*
 * Fills the pages and their rows. Each page begins with the row that is valid at its beginning.
 * Returns the number of rows.
 */
static uint32_t fill_pages(const struct rows *rows, struct shstk_rules_header *h,
			   struct compiled_table *t)
{
	uint64_t *rule = (uint64_t *)(h + 1);
	uint32_t *page = (uint32_t *)(rule + h->nr_rules), *row = page + h->nr_pages + 1;
	uint32_t now = rule_number(rule, h->nr_rules, SHSTK_RULE_NONE), n = 0;
	size_t i = 0;

	for (uint32_t p = 0; p < h->nr_pages; p++) {
		uint64_t at = h->base + ((uint64_t)p << SHSTK_RULES_PAGE_SHIFT);
		uint64_t end = at + (1 << SHSTK_RULES_PAGE_SHIFT);

		page[p] = n;
		if (i == rows->n || rows->v[i].offset != at)
			row[n++] = now;
		for (; i < rows->n && rows->v[i].offset < end; i++) {
			now = rule_number(rule, h->nr_rules, rows->v[i].rule);
			row[n++] = (uint32_t)(rows->v[i].offset - at) << 16 | now;
			account(t, rows->img, &rows->v[i],
				i + 1 < rows->n ? rows->v[i + 1].offset : end);
		}
	}
	page[h->nr_pages] = n;
	return n;
}

int compile_table(const struct rows *rows, struct compiled_table *t)
{
	struct shstk_rules_header *h;
	uint64_t base, pages, *rules;
	size_t nr_rules, size;

	if (!text_range(rows->img, &base, &pages))
		return -ENOENT;
	nr_rules = distinct_rules(rows, &rules);
	if (!nr_rules)
		return -ENOMEM;
	if (nr_rules > SHSTK_RULES_MAX_RULES || rows->n + pages > SHSTK_RULES_MAX_ROWS) {
		free(rules);
		return -E2BIG;
	}
	size = sizeof(*h) + 8 * nr_rules + 4 * (pages + 1) + 4 * (rows->n + pages);
	h = calloc(1, size);
	if (!h) {
		free(rules);
		return -ENOMEM;
	}
	*h = (struct shstk_rules_header){
		.magic = SHSTK_RULES_MAGIC,
		.version = SHSTK_RULES_VERSION,
		.machine = rows->img->m->elf_machine,
		.base = base,
		.nr_rules = nr_rules,
		.nr_pages = pages,
	};
	memcpy(h + 1, rules, 8 * nr_rules);
	free(rules);
	h->nr_rows = fill_pages(rows, h, t);
	t->header = h;
	t->size = sizeof(*h) + 8 * nr_rules + 4 * (pages + 1) + 4 * (size_t)h->nr_rows;
	return 0;
}
