// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * chains.c - judges the callchains that the kernel took. See chains.h.
 *
 * The innermost entry is the program counter, whoever made the callchain. If it lies in no code of
 * the process, there is no user stack. A callchain is complete if its last entry lies in a function
 * that the unwind information of its file calls the outermost: _start, or where threads begin. If
 * the sample also has a copy of the stack, libshstk unwinds that copy, and both are compared entry
 * by entry, as far as libshstk is sure: after a guess of its own, it cannot say which entry is
 * right.
 *
 * If perf's ring was full, perf lost records, perhaps of mappings. Then an address in no mapping
 * proves nothing, and its sample is left out.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "libshstk/shstk.h"
#include "selftests/offline/chains.h"
#include "tools/rules/compile.h"
#include "tools/rules/device.h"
#include "tools/shstk.h"
#include "kmod/rules_check.h"

#define SHOWN 10 /* callchains that are shorter, different or not complete and are printed */

/**
 * struct chain_ends - the unwind rules of a file, which say where outermost frames are
 * @file: the file.
 * @table: its table of rules; without a header if the file has no table.
 * @view: the parts of the table.
 * @next: the rules of another file.
 */
struct chain_ends {
	const struct image *file;
	struct compiled_table table;
	struct ushstk_rules_view view;
	struct chain_ends *next;
};

/* Makes the table of a file. A file that cannot be compiled has no outermost frames. */
static void compile(struct chain_ends *e, const struct image *image)
{
	struct rules_file file;
	int err = rules_file_from_fd(&file, dup(image->fd));

	if (err)
		return;
	if (rules_compile(file.data, file.size, image->found, &e->table))
		e->table.header = NULL;
	else if (ushstk_rules_check(e->table.header, e->table.size, e->table.header->machine,
				    &e->view))
		complain("%s: its table is not well-formed", image->found);
	rules_file_close(&file);
}

static struct chain_ends *ends_of(struct chains *c, const struct image *file)
{
	struct chain_ends *e;

	for (e = c->ends; e; e = e->next)
		if (e->file == file)
			return e;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->file = file;
	compile(e, file);
	e->next = c->ends;
	c->ends = e;
	return e;
}

/*
 * Returns whether the outermost frame is in the function at @offset. @first: this is the innermost
 * entry too, that is, a thread has just begun.
 */
static bool is_outermost(const struct chain_ends *e, uint64_t offset, bool first)
{
	unsigned int kind;

	if (!e->view.rule)
		return false;
	kind = ushstk_rule_kind(ushstk_rule_at(&e->view, offset));
	return kind == SHSTK_RULE_END || (kind == SHSTK_RULE_CLONE && first);
}

static void print_place(const char *what, const struct chain_place *p, uint64_t addr)
{
	if (p->file)
		fprintf(stderr, " %s %s+%#" PRIx64, what, p->file->path, p->offset);
	else
		fprintf(stderr, " %s %#" PRIx64, what, addr);
}

/* Returns how many entries precede the first guess. */
static size_t sure_entries(const struct unwound *u)
{
	size_t n = 0;

	while (n < u->nr && !(u->marks[n] & SHSTK_MARK_GUESS))
		n++;
	return n;
}

/* Prints that entry @i is different, or is the first missing one. */
static void print_entry(const struct chain *s, size_t i)
{
	const struct unwound *u = s->unwound;
	struct chain_place place;

	fprintf(stderr, "%sentry %zu of %zu",
		i < sure_entries(u) ? "" : "where unwinding guessed, ", i + 1, s->nr);
	if (i) {
		place = s->where(s->arg, s->ips[i - 1] - (i > 1));
		print_place("behind", &place, s->ips[i - 1]);
	}
	if (i < s->nr) {
		place = s->where(s->arg, s->ips[i] - 1);
		print_place("is", &place, s->ips[i]);
	} else {
		fprintf(stderr, " is not there,");
	}
	place = s->where(s->arg, u->pcs[i] - 1);
	print_place("unwound:", &place, u->pcs[i]);
	fputc('\n', stderr);
}

static void compare(struct chains *c, const struct chain *s)
{
	const struct unwound *u = s->unwound;
	size_t n = s->nr < u->nr ? s->nr : u->nr, i = 0;

	c->unwound++;
	while (i < n && s->ips[i] == u->pcs[i])
		i++;
	if (i == n && s->nr >= u->nr) {
		c->equal++;
		c->partial += u->end != SHSTK_END_COMPLETE;
		return;
	}
	if (i < n && i >= sure_entries(u)) {
		c->equal++;
		c->partial++;
		c->guessed++;
	} else {
		c->differ += i < n;
		c->shorter += i == n;
	}
	if (c->guessed + c->differ + c->shorter <= SHOWN)
		print_entry(s, i);
}

static void print_end(struct chains *c, const struct chain_place *last, uint64_t addr, size_t nr)
{
	if (c->told++ >= SHOWN)
		return;
	fprintf(stderr, "not whole, %zu entries: ends", nr);
	print_place(last->mapped ? "in" : "in no code,", last, addr);
	fputc('\n', stderr);
}

static bool all_mapped(const struct chain *s)
{
	for (size_t i = 0; i < s->nr; i++)
		if (!s->where(s->arg, s->ips[i] - !!i).mapped)
			return false;
	return true;
}

bool chains_add(struct chains *c, const struct chain *s)
{
	struct chain_ends *e = NULL;
	struct chain_place last;

	if (c->lost && !all_mapped(s)) {
		c->unknown++;
		return true;
	}
	if (!s->nr || !s->where(s->arg, s->ips[0]).mapped) {
		c->without++;
		return true;
	}
	c->samples++;
	/* A return address lies behind the call: look at the call itself. */
	last = s->where(s->arg, s->ips[s->nr - 1] - (s->nr > 1));
	if (last.file) {
		e = ends_of(c, last.file);
		if (!e)
			return false;
	}
	if (e && is_outermost(e, last.offset, s->nr == 1))
		c->whole++;
	else
		print_end(c, &last, s->ips[s->nr - 1], s->nr);
	if (s->unwound->nr)
		compare(c, s);
	return true;
}

void chains_print(const struct chains *c)
{
	printf("%" PRIu64 " samples have a user stack, %" PRIu64 " have none\n", c->samples,
	       c->without);
	printf("%" PRIu64 " chains whole\n", c->whole);
	if (c->lost)
		printf("%" PRIu64 " records lost by perf, %" PRIu64
		       " samples left out for entries in code that is not known\n",
		       c->lost, c->unknown);
	if (!c->unwound)
		return;
	printf("%" PRIu64 " unwound from copies too: %" PRIu64 " equal, %" PRIu64
	       " of them as far as that went, which was a guess %" PRIu64 " times; %" PRIu64
	       " shorter, %" PRIu64 " differ\n",
	       c->unwound, c->equal, c->partial, c->guessed, c->shorter, c->differ);
}

void chains_deinit(struct chains *c)
{
	while (c->ends) {
		struct chain_ends *e = c->ends;

		c->ends = e->next;
		free(e->table.header);
		free(e);
	}
}
