// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * forms_test.c - tables of Go made here, in each form that Go ever had: of releases that no
 * suite of Debian has, too (1.16 to 1.18, 1.20). Some are hostile.
 */
#include "selftests/go/forms.h"

#include "kselftest_harness.h"

/* clang-format off */
FIXTURE(forms)
{
	struct file file;
	struct gofile go;
};

FIXTURE_SETUP(forms)
{
}

FIXTURE_TEARDOWN(forms)
{
	shstk_gofile_deinit(&self->go);
}

FIXTURE_VARIANT(forms)
{
	const struct form *form;
	uint64_t text; /* start of the code as the header has it; 0: moduledata has it */
	unsigned int gofunc;
};

FIXTURE_VARIANT_ADD(forms, go_1_2) { .form = &go_1_2 };
FIXTURE_VARIANT_ADD(forms, go_1_16) { .form = &go_1_16 };
FIXTURE_VARIANT_ADD(forms, go_1_18) { .form = &go_1_18, .text = TEXT, .gofunc = 38 };
FIXTURE_VARIANT_ADD(forms, go_1_20) { .form = &go_1_20, .text = TEXT, .gofunc = 40 };
FIXTURE_VARIANT_ADD(forms, go_1_26) { .form = &go_1_20, .gofunc = 40 };
FIXTURE_VARIANT_ADD(forms, go_1_27) { .form = &go_1_20, .gofunc = 43 };
/* clang-format on */

static bool make_variant(struct file *f, struct gofile *go, const FIXTURE_VARIANT(forms) * v)
{
	make(f, v->form, v->text, v->gofunc);
	return !shstk_gofile_init(go, f->bytes, f->size);
}

TEST_F(forms, functions_and_their_names_are_found)
{
	const struct gopclntab *tab = &self->go.tab;
	struct gofunc f;

	ASSERT_TRUE(make_variant(&self->file, &self->go, variant));
	EXPECT_EQ(tab->nfunc, FUNCS);
	ASSERT_TRUE(shstk_gopclntab_find(tab, TEXT + 63, &f));
	EXPECT_EQ(f.entry, TEXT);
	EXPECT_EQ(f.end, TEXT + 64);
	EXPECT_STREQ(shstk_gopclntab_name(tab, &f), "main.plain");
	ASSERT_TRUE(shstk_gopclntab_find(tab, TEXT + 64, &f));
	EXPECT_STREQ(shstk_gopclntab_name(tab, &f), "main.outer");
	EXPECT_FALSE(shstk_gopclntab_find(tab, TEXT + 64 * FUNCS, &f));
	EXPECT_FALSE(shstk_gopclntab_find(tab, TEXT - 1, &f));
}

TEST_F(forms, sp_is_known_at_each_instruction)
{
	static const struct {
		unsigned int at;
		int cfa;
	} want[] = { { 0, 8 }, { 3, 8 }, { 4, 16 }, { 7, 16 }, { 8, 48 }, { 59, 48 }, { 60, 8 } };
	unsigned int i;

	ASSERT_TRUE(make_variant(&self->file, &self->go, variant));
	for (i = 0; i < ARRAY_SIZE(want); i++) {
		uint64_t rule = gorule_at(&self->go.tab, TEXT + want[i].at);

		EXPECT_EQ(RULE_KIND(rule), RULE_SP);
		EXPECT_EQ(rule_cfa_off(rule), want[i].cfa);
	}
	EXPECT_EQ(gorule_at(&self->go.tab, TEXT + 128), RULE_END);
	EXPECT_EQ(gorule_at(&self->go.tab, TEXT + 192), RULE_NONE);
}

TEST_F(forms, lines_and_inlined_calls_are_found)
{
	struct goline l[4];

	ASSERT_TRUE(make_variant(&self->file, &self->go, variant));
	ASSERT_EQ(shstk_gopclntab_lines(&self->go.tab, TEXT + 5, l, 4), 1);
	EXPECT_STREQ(l[0].function, "main.plain");
	EXPECT_STREQ(l[0].file, "/a.go");
	EXPECT_EQ(l[0].line, 10);
	ASSERT_EQ(shstk_gopclntab_lines(&self->go.tab, TEXT + 64 + 20, l, 4), 2);
	EXPECT_STREQ(l[0].function, "main.inner[go.shape.int]");
	EXPECT_STREQ(l[0].file, "/b.go");
	EXPECT_EQ(l[0].line, 20);
	EXPECT_TRUE(l[0].inlined);
	EXPECT_STREQ(l[1].function, "main.outer");
	EXPECT_STREQ(l[1].file, "/a.go");
	EXPECT_EQ(l[1].line, 10);
	EXPECT_FALSE(l[1].inlined);
	if (variant->form->start_line) {
		EXPECT_EQ(l[0].start_line, 3);
		EXPECT_EQ(l[1].start_line, 7);
	}
}

/* Changes every byte of the data in turn, and cuts the table short at each. */
TEST_F(forms, damaged_tables_end)
{
	struct goline l[4];
	struct gofile go;
	size_t at, i;

	ASSERT_TRUE(make_variant(&self->file, &self->go, variant));
	for (at = self->file.head; at < self->file.size; at++) {
		uint8_t was = self->file.bytes[at];

		self->file.bytes[at] ^= 0xff;
		if (!shstk_gofile_init(&go, self->file.bytes, self->file.size))
			for (i = 0; i < 200; i += 7) {
				gorule_at(&go.tab, TEXT + i);
				EXPECT_LE(shstk_gopclntab_lines(&go.tab, TEXT + i, l, 4), 4);
			}
		shstk_gofile_deinit(&go);
		self->file.bytes[at] = was;
		if (!shstk_gofile_init(&go, self->file.bytes, at))
			gorule_at(&go.tab, TEXT + 5);
		shstk_gofile_deinit(&go);
	}
}

TEST_HARNESS_MAIN
