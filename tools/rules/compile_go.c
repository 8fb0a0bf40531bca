// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * compile_go.c - makes rules from the table of functions that each Go program contains, even if it
 * is stripped.
 *
 * Functions that switch stacks, or that resume interrupted code, are described by data that the
 * runtime keeps elsewhere (Documentation/go.rst). A walk ends in such a function.
 */
#include "libshstk/go/gorule.h"
#include "tools/rules/compile_private.h"

static uint64_t rule_at(const struct gopclntab *g, enum go_role role, uint64_t vaddr)
{
	struct cfi_row row;
	const struct described d = { g->img, NULL, &row };
	uint64_t rule = SHSTK_RULE_CUT;

	if (gorule_row(g, vaddr, &row))
		return SHSTK_RULE_NONE;
	if (role == GO_OUTERMOST)
		return SHSTK_RULE_END;
	if (role == GO_ORDINARY)
		rule = kernel_rule(&d, vaddr);
	/* Each frame of Go's has a record, whose place its table does not say. */
	return rule == LOST_RULE(g->img->m) ? SHSTK_RULE_CUT : rule;
}

/* Reads the rules of one function. The bytes behind the end of its sp table are padding. */
static void read_function(struct rows *rows, const struct gopclntab *g, const struct gofunc *f)
{
	enum go_role role = gorule_role(g, f);
	uint64_t at = f->entry, end;

	while (at < f->end && shstk_gopclntab_sp_end(g, f, at, &end)) {
		rows_add(rows, at, rule_at(g, role, at));
		at = end;
	}
	rows_add(rows, at < f->end ? at : f->end, SHSTK_RULE_NONE);
	rows_add_span(rows, f->entry, f->end);
}

void read_go(struct rows *rows)
{
	struct gopclntab g;
	struct gofunc f;

	if (shstk_gopclntab_init(&g, rows->img, 0))
		return;
	for (size_t i = 0; i < g.nfunc && !rows->err; i++)
		if (shstk_gopclntab_get(&g, i, &f) && rows_is_new(rows, f.entry, f.end))
			read_function(rows, &g, &f);
	shstk_gopclntab_deinit(&g);
	rows_end_section(rows);
}
