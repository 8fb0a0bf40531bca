// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kernel_rules_fuzz.c - tables of unwind rules as shstk_perf.ko gets them: if a table is accepted,
 * no look-up in it leaves the table.
 *
 * The table lies at the end of memory of its own size, so that the address sanitizer sees a read of
 * one byte behind it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kmod/rules_check.h"

/* Looks up the first and the last byte of each row, and the bytes around the table. */
static void look_everything_up(const struct ushstk_rules_view *v)
{
	const uint64_t page_size = 1 << SHSTK_RULES_PAGE_SHIFT;
	uint64_t size = v->nr_pages * page_size;

	for (uint32_t page = 0; page < v->nr_pages; page++) {
		for (uint32_t i = v->page[page]; i < v->page[page + 1]; i++) {
			uint64_t off = v->base + page * page_size + (v->row[i] >> 16);
			uint64_t rule = v->rule[v->row[i] & 0xffff];

			if (ushstk_rule_at(v, off) != rule)
				abort();
			if (i > v->page[page] &&
			    ushstk_rule_at(v, off - 1) != v->rule[v->row[i - 1] & 0xffff])
				abort();
		}
	}
	if (ushstk_rule_at(v, v->base - 1) != SHSTK_RULE_NONE ||
	    ushstk_rule_at(v, v->base + size) != SHSTK_RULE_NONE ||
	    ushstk_rule_at(v, UINT64_MAX) != SHSTK_RULE_NONE)
		abort();
}

static void check(const uint8_t *data, size_t size, unsigned int machine)
{
	struct ushstk_rules_view view;
	void *table = malloc(size);

	if (!table)
		abort();
	memcpy(table, data, size);
	if (!ushstk_rules_check(table, size, machine, &view))
		look_everything_up(&view);
	free(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* The module refuses input without a whole header before it copies it. */
	if (size < sizeof(struct shstk_rules_header))
		return 0;
	check(data, size, EM_X86_64);
	check(data, size, EM_AARCH64);
	return 0;
}
