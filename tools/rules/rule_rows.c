// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rule_rows.c - the list of rules that is collected from a file; see rule_rows.h.
 */
#include <errno.h>
#include <stdlib.h>

#include <linux/shstk_rules.h>

#include "tools/rules/rule_rows.h"

/*
 * More rows than any file has: LLVM has two million. It limits the memory that a hostile file
 * takes.
 */
#define MAX_ROWS (1u << 24)

/* Makes room for one more element behind @n of them. Returns the array, or NULL. */
static void *grow(void *v, size_t n, size_t *room, size_t size)
{
	size_t more = *room ? 2 * *room : 1024;

	if (n < *room)
		return v;
	v = reallocarray(v, more, size);
	if (v)
		*room = more;
	return v;
}

void rows_add(struct rows *rows, uint64_t vaddr, uint64_t rule)
{
	struct row *v;

	if (rows->n == MAX_ROWS) {
		rows->err = -E2BIG;
		return;
	}
	v = grow(rows->v, rows->n, &rows->room, sizeof(*v));
	if (!v) {
		rows->err = -ENOMEM;
		return;
	}
	rows->v = v;
	v[rows->n++] = (struct row){ .vaddr = vaddr, .rule = rule };
}

void rows_add_span(struct rows *rows, uint64_t start, uint64_t end)
{
	struct span *v = grow(rows->span, rows->nspan, &rows->span_room, sizeof(*v));

	if (!v) {
		rows->err = -ENOMEM;
		return;
	}
	rows->span = v;
	v[rows->nspan++] = (struct span){ start, end };
}

static int compare_spans(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

void rows_end_section(struct rows *rows)
{
	if (rows->nspan)
		qsort(rows->span, rows->nspan, sizeof(*rows->span), compare_spans);
	rows->sorted = rows->nspan;
}

bool rows_described(const struct rows *rows, uint64_t start, uint64_t end)
{
	size_t lo = 0, n = rows->sorted;

	while (n) {
		size_t half = n / 2;

		if (rows->span[lo + half].end <= start) {
			lo += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return lo < rows->sorted && rows->span[lo].start < end;
}

bool rows_is_new(const struct rows *rows, uint64_t start, uint64_t end)
{
	return start < end && start >= rows->img->lo && end <= rows->img->hi &&
	       !rows_described(rows, start, end);
}

/*
 * Compares by address. At the same address, the end of one function comes before the beginning of
 * the next.
 */
static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return (x->rule != SHSTK_RULE_NONE) - (y->rule != SHSTK_RULE_NONE);
}

void rows_sort(struct rows *rows)
{
	size_t n = 0;

	if (!rows->n)
		return;
	qsort(rows->v, rows->n, sizeof(*rows->v), compare_rows);
	for (size_t i = 0; i < rows->n; i++) {
		if (i + 1 < rows->n && rows->v[i + 1].vaddr == rows->v[i].vaddr)
			continue;
		if (n && rows->v[n - 1].rule == rows->v[i].rule)
			continue;
		rows->v[n++] = rows->v[i];
	}
	rows->n = n;
}

static const struct load *load_of(const struct elf_image *img, uint64_t vaddr)
{
	for (unsigned int i = 0; i < img->nload; i++)
		if (img->load[i].exec && vaddr - img->load[i].vaddr < img->load[i].filesz)
			return &img->load[i];
	return NULL;
}

static int compare_offsets(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/*
 * Keeps one of several rows with the same offset. Only segments that overlap in the file can give
 * such rows.
 */
static void drop_doubles(struct rows *rows)
{
	size_t n = 0;

	for (size_t i = 0; i < rows->n; i++) {
		if (n && rows->v[n - 1].offset == rows->v[i].offset)
			n--;
		rows->v[n++] = rows->v[i];
	}
	rows->n = n;
}

void rows_place(struct rows *rows)
{
	size_t n = 0;

	for (size_t i = 0; i < rows->n; i++) {
		uint64_t vaddr = rows->v[i].vaddr;
		const struct load *l = load_of(rows->img, vaddr);

		if (!l)
			continue;
		rows->v[n].rule = rows->v[i].rule;
		rows->v[n++].offset = vaddr - l->vaddr + l->offset;
	}
	rows->n = n;
	if (n)
		qsort(rows->v, n, sizeof(*rows->v), compare_offsets);
	drop_doubles(rows);
}

void rows_free(struct rows *rows)
{
	free(rows->v);
	free(rows->span);
}
