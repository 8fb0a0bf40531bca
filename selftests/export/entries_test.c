// SPDX-License-Identifier: GPL-2.0-or-later
/* entries_test.c - functions are found among entries of a unit that are written by hand. */
#include <dwarf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libshstk/symbol/budget.h"
#include "libshstk/symbol/entries.h"
#include "kselftest_harness.h"

#define HEADER 11 /* bytes in front of the root: references count them */
#define FOUND_MAX 16
#define DEEP 1000

/* Abbreviations that all tables have. Not the first has the smallest code. */
#define COMMON                                                                                   \
	5, DW_TAG_namespace, 1, 0, 0, /* a scope */                                              \
		1, DW_TAG_compile_unit, 1, 0, 0, /* the root */                                  \
		2, DW_TAG_subprogram, 0, DW_AT_high_pc, DW_FORM_data1, 0, 0, /* one with code */ \
		3, DW_TAG_subprogram, 1, DW_AT_high_pc, DW_FORM_data1, 0, 0, /* with children */ \
		4, DW_TAG_subprogram, 0, DW_AT_low_pc, DW_FORM_flag_present, 0, 0, /* without */ \
		6, DW_TAG_variable, 1, DW_AT_sibling, DW_FORM_ref1, 0, 0

struct found {
	size_t nr;
	size_t most; /* after so many the search is to end */
	size_t at[FOUND_MAX];
};

static bool take(void *arg, size_t distance)
{
	struct found *found = arg;

	if (found->nr < FOUND_MAX)
		found->at[found->nr] = distance;
	return ++found->nr < found->most;
}

/* Returns a copy behind which nothing may be read. */
static uint8_t *copy(const uint8_t *bytes, size_t size)
{
	uint8_t *ret = malloc(size);

	if (!ret)
		abort();
	memcpy(ret, bytes, size);
	return ret;
}

static struct found search(const uint8_t *abbrevs, size_t nr_abbrevs, const uint8_t *entries,
			   size_t nr, bool deep, size_t most)
{
	struct found found = { .most = most };
	struct shstk_budget budget;
	struct shstk_account account;
	uint8_t *table = copy(abbrevs, nr_abbrevs), *unit = malloc(HEADER + nr);

	if (!unit)
		abort();
	memcpy(unit + HEADER, entries, nr);
	shstk_budget_init(&budget, 1u << 24, 10000000000);
	shstk_account_open(&account, &budget, "unit");
	if (shstk_account_begin(&account))
		shstk_functions_each(
			&(struct shstk_unit){
				.header = unit,
				.entries = { unit + HEADER, unit + HEADER + nr },
				.abbrevs = { table, table + nr_abbrevs },
				.version = 5,
				.address_size = 8,
				.offset_size = 4,
			},
			deep, &account, take, &found);
	shstk_account_end(&account);
	if (account.memory)
		abort();
	shstk_account_close(&account);
	free(unit);
	free(table);
	return found;
}

/* Searches entries of the common abbreviations and those that are @more. */
#define SEARCH(deep, most, more, ...)                                                        \
	({                                                                                   \
		const uint8_t abbrevs_[] = { COMMON more, 0 }, entries_[] = { __VA_ARGS__ }; \
                                                                                             \
		search(abbrevs_, sizeof(abbrevs_), entries_, sizeof(entries_), deep, most);  \
	})
#define MORE(...) , __VA_ARGS__
#define NO_MORE

TEST(functions_are_found_in_namespaces)
{
	struct found found = SEARCH(false, 9, NO_MORE, 1, 2, 7, 5, 2, 7, 4, 0, 2, 7, 0);

	ASSERT_EQ(3, found.nr);
	EXPECT_EQ(1, found.at[0]);
	EXPECT_EQ(4, found.at[1]);
	EXPECT_EQ(8, found.at[2]);
}

TEST(functions_in_functions_are_found_if_asked_for)
{
	EXPECT_EQ(2, SEARCH(false, 9, NO_MORE, 1, 3, 7, 2, 7, 0, 2, 7, 0).nr);
	EXPECT_EQ(3, SEARCH(true, 9, NO_MORE, 1, 3, 7, 2, 7, 0, 2, 7, 0).nr);
}

TEST(the_search_ends_when_enough_was_found)
{
	EXPECT_EQ(1, SEARCH(true, 1, NO_MORE, 1, 3, 7, 2, 7, 0, 2, 7, 0).nr);
}

TEST(siblings_are_jumped_to_if_they_lie_behind)
{
	struct found found =
		SEARCH(true, 9, NO_MORE, 1, 6, HEADER + 7, 0xff, 0xff, 0xff, 0xff, 2, 7, 0);

	ASSERT_EQ(1, found.nr);
	EXPECT_EQ(7, found.at[0]);
	/* The root, the entry itself, far behind: what is inside is passed over. */
	EXPECT_EQ(1, SEARCH(true, 9, NO_MORE, 1, 6, HEADER, 2, 7, 0, 2, 7, 0).nr);
	EXPECT_EQ(1, SEARCH(true, 9, NO_MORE, 1, 6, HEADER + 1, 2, 7, 0, 2, 7, 0).nr);
	EXPECT_EQ(1, SEARCH(true, 9, NO_MORE, 1, 6, 255, 2, 7, 0, 2, 7, 0).nr);
	EXPECT_EQ(1, SEARCH(true, 9, NO_MORE, 1, 6, 0, 2, 7, 0, 2, 7, 0).nr);
	/* The end of the unit. */
	EXPECT_EQ(0, SEARCH(true, 9, NO_MORE, 1, 6, HEADER + 7, 2, 7, 0, 0).nr);
}

struct form {
	uint8_t form[2]; /* the second byte: the constant of the abbreviation, if @more */
	bool more;
	uint8_t nr;
	uint8_t bytes[20];
};

static const struct form forms[] = {
	{ { DW_FORM_addr }, false, 8, { 0 } },
	{ { DW_FORM_block1 }, false, 3, { 2 } },
	{ { DW_FORM_block2 }, false, 3, { 1 } },
	{ { DW_FORM_block4 }, false, 5, { 1 } },
	{ { DW_FORM_block }, false, 4, { 0x82, 0 } },
	{ { DW_FORM_exprloc }, false, 2, { 1 } },
	{ { DW_FORM_data1 }, false, 1, { 0 } },
	{ { DW_FORM_data2 }, false, 2, { 0 } },
	{ { DW_FORM_data4 }, false, 4, { 0 } },
	{ { DW_FORM_data8 }, false, 8, { 0 } },
	{ { DW_FORM_data16 }, false, 16, { 0 } },
	{ { DW_FORM_string }, false, 3, { 'a', 'b', 0 } },
	{ { DW_FORM_flag }, false, 1, { 1 } },
	{ { DW_FORM_flag_present }, false, 0, { 0 } },
	{ { DW_FORM_implicit_const, 0x7f }, true, 0, { 0 } },
	{ { DW_FORM_sdata }, false, 2, { 0xff, 0 } },
	{ { DW_FORM_udata }, false, 2, { 0x80, 1 } },
	{ { DW_FORM_strp }, false, 4, { 0 } },
	{ { DW_FORM_line_strp }, false, 4, { 0 } },
	{ { DW_FORM_strp_sup }, false, 4, { 0 } },
	{ { DW_FORM_sec_offset }, false, 4, { 0 } },
	{ { DW_FORM_ref_addr }, false, 4, { 0 } },
	{ { DW_FORM_ref1 }, false, 1, { 0 } },
	{ { DW_FORM_ref2 }, false, 2, { 0 } },
	{ { DW_FORM_ref4 }, false, 4, { 0 } },
	{ { DW_FORM_ref8 }, false, 8, { 0 } },
	{ { DW_FORM_ref_udata }, false, 2, { 0x80, 0 } },
	{ { DW_FORM_ref_sig8 }, false, 8, { 0 } },
	{ { DW_FORM_ref_sup4 }, false, 4, { 0 } },
	{ { DW_FORM_ref_sup8 }, false, 8, { 0 } },
	{ { DW_FORM_strx }, false, 2, { 0x80, 0 } },
	{ { DW_FORM_strx1 }, false, 1, { 0 } },
	{ { DW_FORM_strx2 }, false, 2, { 0 } },
	{ { DW_FORM_strx3 }, false, 3, { 0 } },
	{ { DW_FORM_strx4 }, false, 4, { 0 } },
	{ { DW_FORM_addrx }, false, 1, { 0 } },
	{ { DW_FORM_addrx1 }, false, 1, { 0 } },
	{ { DW_FORM_addrx2 }, false, 2, { 0 } },
	{ { DW_FORM_addrx3 }, false, 3, { 0 } },
	{ { DW_FORM_addrx4 }, false, 4, { 0 } },
	{ { DW_FORM_loclistx }, false, 1, { 0 } },
	{ { DW_FORM_rnglistx }, false, 1, { 0 } },
	{ { DW_FORM_indirect }, false, 5, { DW_FORM_data4 } },
	{ { DW_FORM_indirect }, false, 4, { DW_FORM_string, 'a', 'b' } },
};

/*
 * Makes an entry with an attribute of a form between two numbers, and a function behind it. Returns
 * the number of bytes.
 */
static size_t with_form(const struct form *form, uint8_t *ret)
{
	uint8_t *p = ret;

	*p++ = 1;
	*p++ = 7;
	*p++ = 0xee;
	memcpy(p, form->bytes, form->nr);
	p += form->nr;
	*p++ = 0xee;
	*p++ = 2;
	*p++ = 7;
	*p++ = 0;
	return p - ret;
}

static size_t abbrevs_with(const struct form *form, uint8_t *ret)
{
	static const uint8_t common[] = {
		COMMON, 7, DW_TAG_member, 0, DW_AT_decl_line, DW_FORM_data1, DW_AT_decl_file
	};
	static const uint8_t end[] = { DW_AT_decl_line, DW_FORM_data1, 0, 0, 0 };
	size_t nr = form->more ? 2 : 1;

	memcpy(ret, common, sizeof(common));
	memcpy(ret + sizeof(common), form->form, nr);
	memcpy(ret + sizeof(common) + nr, end, sizeof(end));
	return sizeof(common) + nr + sizeof(end);
}

TEST(attributes_of_each_form_are_passed_over)
{
	uint8_t abbrevs[128], entries[64];

	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		size_t nr_abbrevs = abbrevs_with(&forms[i], abbrevs);
		size_t nr = with_form(&forms[i], entries);
		struct found found = search(abbrevs, nr_abbrevs, entries, nr, false, 9);

		EXPECT_EQ(1, found.nr)
		{
			TH_LOG("form %#x", forms[i].form[0]);
		}
		EXPECT_EQ(nr - 3, found.at[0]);
		/* Cut off anywhere, in either section: nothing is read beyond. */
		for (size_t cut = 1; cut < nr - 3; cut++)
			EXPECT_EQ(0, search(abbrevs, nr_abbrevs, entries, cut, false, 9).nr);
		for (size_t cut = 1; cut < nr_abbrevs - 1; cut++)
			EXPECT_GE(1, search(abbrevs, cut, entries, nr, false, 9).nr);
	}
}

TEST(forms_that_are_not_known_end_the_search)
{
	EXPECT_EQ(1, SEARCH(false, 9, MORE(7, DW_TAG_member, 0, DW_AT_name, 0x7e, 0, 0), 1, 2, 7, 7,
			    0, 2, 7, 0)
			     .nr);
	EXPECT_EQ(1, SEARCH(false, 9, MORE(7, DW_TAG_member, 0, DW_AT_name, 0, 0, 0), 1, 2, 7, 7, 2,
			    7, 0)
			     .nr);
	/* One that no entry has is no harm. */
	EXPECT_EQ(2, SEARCH(false, 9, MORE(7, DW_TAG_member, 0, DW_AT_name, 0x7e, 0, 0), 1, 2, 7, 2,
			    7, 0)
			     .nr);
	/* A form that is in the entry cannot be in another one. */
	EXPECT_EQ(0, SEARCH(false, 9, MORE(7, DW_TAG_member, 0, DW_AT_name, DW_FORM_indirect, 0, 0),
			    1, 7, DW_FORM_indirect, DW_FORM_data1, 0, 2, 7, 0)
			     .nr);
}

TEST(entries_without_an_abbreviation_end_the_search)
{
	EXPECT_EQ(1, SEARCH(false, 9, NO_MORE, 1, 2, 7, 77, 2, 7, 0).nr);
}

TEST(what_is_too_deep_is_passed_over)
{
	static const uint8_t abbrevs[] = { COMMON, 0 };
	uint8_t entries[2 * DEEP + 6];
	struct found found;

	memset(entries, 5, DEEP + 1);
	entries[0] = 1;
	memcpy(entries + DEEP + 1, (uint8_t[]){ 2, 7 }, 2);
	memset(entries + DEEP + 3, 0, DEEP);
	memcpy(entries + 2 * DEEP + 3, (uint8_t[]){ 2, 7, 0 }, 3);
	found = search(abbrevs, sizeof(abbrevs), entries, sizeof(entries), true, 9);
	ASSERT_EQ(1, found.nr);
	EXPECT_EQ(2 * DEEP + 3, found.at[0]);
}

TEST_HARNESS_MAIN
