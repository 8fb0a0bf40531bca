// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * chains_test.c - tests how chains.c judges the kernel's callchains, by what was
 * unwound from copies of the same stacks.
 */
#include <stdint.h>
#include <string.h>

#include "shstk.h"
#include "tools/rules/compile.h"
#include "tools/rules/device.h"
#include "tools/shstk.h"
#include "selftests/offline/chains.h"
#include "kselftest.h"

#define ENTRIES 5

/* Stands in for tools/shstk.c. The functions below stand in for tools/rules: no file is read. */
void complain(const char *format, ...)
{
	(void)format;
}

int rules_file_from_fd(struct rules_file *file, int fd)
{
	(void)file;
	(void)fd;
	return -1;
}

void rules_file_close(struct rules_file *file)
{
	(void)file;
}

int rules_compile(const void *image, size_t size, const char *path, struct compiled_table *ret)
{
	(void)image;
	(void)size;
	(void)path;
	(void)ret;
	return -1;
}

static struct chain_place where(void *arg, uint64_t addr)
{
	(void)arg;
	return (struct chain_place){ .mapped = addr >= 0x1000 };
}

/**
 * struct one - a sample and how it is to be judged
 * @name: what the sample shows.
 * @ips: the kernel's entries, with a 0 at the end.
 * @pcs: the entries that were unwound, with a 0 at the end.
 * @guess: index of the first entry of @pcs that is a guess; 0: there is none.
 * @end: how unwinding ended.
 * @equal: the sample counts as equal.
 * @partial: it counts as equal as far as the unwound part goes only.
 * @guessed: the unwound part goes no further because of a guess.
 * @shorter: the kernel's chain is shorter.
 * @differ: the kernel's chain has another entry.
 */
struct one {
	const char *name;
	uint64_t ips[ENTRIES + 1], pcs[ENTRIES + 1];
	unsigned int guess;
	int end;
	unsigned int equal, partial, guessed, shorter, differ;
};

/* clang-format off: a table */
static const struct one ones[] = {
	{ "equal",
	  { 0x1000, 0x1100, 0x1200 },
	  { 0x1000, 0x1100, 0x1200 },
	  0,
	  SHSTK_END_COMPLETE,
	  1,
	  0,
	  0,
	  0,
	  0 },
	{ "equal where all is guessed",
	  { 0x1000, 0x1100, 0x1200 },
	  { 0x1000, 0x1100, 0x1200 },
	  1,
	  SHSTK_END_COMPLETE,
	  1,
	  0,
	  0,
	  0,
	  0 },
	{ "equal as far as the copy goes",
	  { 0x1000, 0x1100, 0x1200 },
	  { 0x1000, 0x1100 },
	  0,
	  SHSTK_END_READ,
	  1,
	  1,
	  0,
	  0,
	  0 },
	{ "shorter",
	  { 0x1000, 0x1100 },
	  { 0x1000, 0x1100, 0x1200 },
	  0,
	  SHSTK_END_COMPLETE,
	  0,
	  0,
	  0,
	  1,
	  0 },
	{ "shorter than a guess",
	  { 0x1000, 0x1100 },
	  { 0x1000, 0x1100, 0x1200 },
	  2,
	  SHSTK_END_COMPLETE,
	  0,
	  0,
	  0,
	  1,
	  0 },
	{ "another entry",
	  { 0x1000, 0x1110, 0x1200 },
	  { 0x1000, 0x1100, 0x1200 },
	  0,
	  SHSTK_END_COMPLETE,
	  0,
	  0,
	  0,
	  0,
	  1 },
	{ "another entry than the one guessed",
	  { 0x1000, 0x1110, 0x1200 },
	  { 0x1000, 0x1100, 0x1200 },
	  1,
	  SHSTK_END_COMPLETE,
	  1,
	  1,
	  1,
	  0,
	  0 },
	{ "another entry behind a guess",
	  { 0x1000, 0x1100, 0x1210 },
	  { 0x1000, 0x1100, 0x1200 },
	  1,
	  SHSTK_END_COMPLETE,
	  1,
	  1,
	  1,
	  0,
	  0 },
	{ "another entry in front of a guess",
	  { 0x1000, 0x1110, 0x1200 },
	  { 0x1000, 0x1100, 0x1200 },
	  2,
	  SHSTK_END_COMPLETE,
	  0,
	  0,
	  0,
	  0,
	  1 },
};
/* clang-format on */

static unsigned int length(const uint64_t *v)
{
	unsigned int n = 0;

	while (v[n])
		n++;
	return n;
}

/* Calls chains_add() with the @nr entries in @ips and the unwound stack @u. */
static bool add(struct chains *c, const uint64_t *ips, size_t nr, const struct unwound *u)
{
	return chains_add(c, &(struct chain){ ips, nr, u, where, NULL });
}

static void judge(const struct one *o)
{
	uint64_t pcs[ENTRIES + 1];
	uint8_t marks[ENTRIES + 1] = { 0 };
	struct unwound u = { .pcs = pcs, .marks = marks, .nr = length(o->pcs), .end = o->end };
	struct chains c = { 0 };

	memcpy(pcs, o->pcs, sizeof(pcs));
	if (o->guess)
		marks[o->guess] = SHSTK_MARK_GUESS;
	ksft_test_result(add(&c, o->ips, length(o->ips), &u) && c.samples == 1 && c.unwound == 1 &&
				 c.equal == o->equal && c.partial == o->partial &&
				 c.guessed == o->guessed && c.shorter == o->shorter &&
				 c.differ == o->differ,
			 "%s\n", o->name);
	chains_deinit(&c);
}

/*
 * An entry outside of all mappings counts against a chain, unless the record of its mapping may be
 * lost.
 */
static void judge_lost(void)
{
	const uint64_t lost[] = { 0x1000, 0x10 }, inner[] = { 0x10 }, known[] = { 0x1000, 0x1100 };
	struct unwound none = { 0 };
	struct chains c = { 0 };
	bool ok = add(&c, lost, 2, &none) && c.samples == 1 && !c.unknown;

	c.lost = 3;
	ok = ok && add(&c, lost, 2, &none) && add(&c, inner, 1, &none) && c.samples == 1 &&
	     c.unknown == 2 && !c.without;
	ok = ok && add(&c, known, 2, &none) && c.samples == 2 && c.unknown == 2;
	ksft_test_result(ok, "behind lost records, entries in no known code are left out\n");
	chains_deinit(&c);
}

int main(void)
{
	const uint64_t nowhere[] = { 0x10, 0x1100 };
	struct unwound none = { 0 };
	struct chains c = { 0 };

	ksft_print_header();
	ksft_set_plan(sizeof(ones) / sizeof(ones[0]) + 2);
	for (size_t i = 0; i < sizeof(ones) / sizeof(ones[0]); i++)
		judge(&ones[i]);
	ksft_test_result(add(&c, nowhere, 2, &none) && !c.samples && c.without == 1,
			 "a program counter in no code has no user stack\n");
	judge_lost();
	ksft_finished();
}
