// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * paths_test.c - functions that nothing describes: their code is looked at once, and the kernel
 * is not asked again and again what words of data are.
 *
 * Counted in calls of the library's own functions, which the linker has pass by here.
 */
#include <string.h>

#include "paths.h"
#include "shstk.h"
#include "vma.h"

#include "kselftest_harness.h"

#define CAPTURES 200
#define ENTRIES 64

long noinfo_frame(long (*f)(long), long x);
long noinfo_push(long (*f)(long), long x);

bool __real_epilogue_rules(const void *m, const void *code, uint64_t pc, bool innermost,
			   void *found, void *arg);
bool __wrap_epilogue_rules(const void *m, const void *code, uint64_t pc, bool innermost,
			   void *found, void *arg);
int __real_vma_query(uint64_t addr, struct vma *ret, char *path, size_t size);
int __wrap_vma_query(uint64_t addr, struct vma *ret, char *path, size_t size);

static unsigned int searches, queries;

bool __wrap_epilogue_rules(const void *m, const void *code, uint64_t pc, bool innermost,
			   void *found, void *arg)
{
	searches++;
	return __real_epilogue_rules(m, code, pc, innermost, found, arg);
}

int __wrap_vma_query(uint64_t addr, struct vma *ret, char *path, size_t size)
{
	queries++;
	return __real_vma_query(addr, ret, path, size);
}

static struct {
	uint64_t first[ENTRIES], pcs[ENTRIES];
	int n, differ;
	enum shstk_end end;
} seen;

/* Captures again and again; a function without unwind information calls it. */
static long capture_again(long x)
{
	struct shstk_info info = { .size = sizeof(info) };
	struct shstk_opts opts = { .size = sizeof(opts), .sources = SHSTK_USE_WALK };

	for (int i = 0; i < CAPTURES; i++) {
		int n = shstk_capture(seen.pcs, ENTRIES, &opts, &info);

		if (!i) {
			memcpy(seen.first, seen.pcs, sizeof(seen.pcs));
			seen.n = n;
			seen.end = info.end;
			searches = queries = 0;
		}
		/*
		 * The first entry is the address behind this call, which is the same in each round.
		 */
		seen.differ += n != seen.n ||
			       (i > 1 && memcmp(seen.first + 1, seen.pcs + 1,
						(size_t)(n - 1) * sizeof(*seen.pcs)));
	}
	return x + 1;
}

TEST(the_code_of_a_frame_is_looked_at_once)
{
	EXPECT_EQ(noinfo_push(capture_again, 3), 4);
	EXPECT_EQ(seen.end, SHSTK_END_COMPLETE);
	EXPECT_EQ(seen.differ, 0);
	EXPECT_EQ(searches, 0);
	EXPECT_EQ(queries, 0);
	EXPECT_EQ(noinfo_frame(capture_again, 3), 4);
	EXPECT_EQ(seen.end, SHSTK_END_COMPLETE);
	EXPECT_EQ(seen.differ, 0);
	EXPECT_EQ(searches, 0);
}

TEST(each_rule_is_kept_once_and_in_order)
{
	struct paths p = { .n = 0 }, got;

	ASSERT_TRUE(paths_add(&p, 100, true));
	ASSERT_TRUE(paths_add(&p, 200, false));
	ASSERT_TRUE(paths_add(&p, 100, true));
	ASSERT_TRUE(paths_add(&p, 100, false));
	EXPECT_EQ(p.n, 3);
	paths_keep(0x401000, 5ull << 48, &p);
	ASSERT_TRUE(paths_find(0x401000, 5ull << 48, &got));
	EXPECT_EQ(got.n, 3);
	EXPECT_EQ(got.lost, 1);
	EXPECT_EQ(got.rule[0], 100);
	EXPECT_EQ(got.rule[1], 200);
	EXPECT_EQ(got.rule[2], 100);
	EXPECT_FALSE(paths_find(0x401000, 6ull << 48, &got));
	EXPECT_FALSE(paths_find(0x401001, 5ull << 48, &got));
}

TEST(too_many_rules_are_said_to_be_so)
{
	struct paths p = { .n = 0 }, got;

	for (uint64_t i = 1; i <= PATHS_MOST; i++)
		ASSERT_TRUE(paths_add(&p, i, false));
	EXPECT_FALSE(paths_add(&p, PATHS_MOST + 1, false));
	EXPECT_EQ(p.n, PATHS_MANY);
	paths_keep(0x402000, 0, &p);
	ASSERT_TRUE(paths_find(0x402000, 0, &got));
	EXPECT_EQ(got.n, PATHS_MANY);
}

TEST(a_new_entry_takes_the_place_of_another)
{
	struct paths p = { .n = 1, .rule = { 7 } }, got;

	for (uint64_t pc = 0x500000; pc < 0x510000; pc++)
		paths_keep(pc, 0, &p);
	EXPECT_TRUE(paths_find(0x50ffff, 0, &got));
	EXPECT_FALSE(paths_find(0x500000, 0, &got));
	paths_keep(1ull << 50, 0, &p);
	EXPECT_FALSE(paths_find(1ull << 50, 0, &got));
}

TEST(that_there_is_no_code_is_asked_again)
{
	unsigned int said = 0;

	EXPECT_FALSE(paths_no_code(0x7000123));
	paths_saw_no_code(0x7000123);
	while (said < 1000 && paths_no_code(0x7000456))
		said++;
	EXPECT_EQ(said, PATHS_ANSWERS);
	paths_saw_no_code(0x7000123);
	EXPECT_FALSE(paths_no_code(0x7001123));
}

TEST_HARNESS_MAIN
