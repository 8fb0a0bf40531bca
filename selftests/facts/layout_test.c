// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * layout_test.c - what a shadow stack holds, where it begins and ends
 */
#include "facts.h"
#include "kselftest_harness.h"

#define DEPTH 64

/* The pointer just after shadow stacks were turned on, when the stack was empty. */
static unsigned long start;

struct level {
	uint64_t ra; /* the address to which this call returns */
	uint64_t slot; /* the place of that address on the ordinary stack */
	unsigned long ssp;
};

static struct level levels[DEPTH];
static uint64_t copy[DEPTH];

/* Each level is a frame, as the function is noinline and uses a value after the call. */
static int noinline descend(int n)
{
	uint64_t ra = RETURN_ADDRESS();
	int ret = 0;

	ss_enter(ra);
	levels[n].ra = ra;
#ifdef __aarch64__
	levels[n].slot = ((uint64_t *)__builtin_frame_address(0))[1];
#endif
	levels[n].ssp = ss_pointer();
	if (n + 1 < DEPTH)
		ret = descend(n + 1) + 1;
	else
		for (int i = 0; i < DEPTH; i++)
			copy[i] = peek(ss_pointer() + i * WORD);
	asm volatile("" : "+r"(ret));
	ss_leave(ra);
	return ret;
}

TEST(the_youngest_entry_is_the_return_address_of_the_running_function)
{
	descend(0);
	EXPECT_EQ(levels[DEPTH - 1].ra, copy[0]);
}

TEST(every_call_has_one_entry_youngest_at_the_lowest_address)
{
	descend(0);
	for (int i = 0; i < DEPTH; i++)
		EXPECT_EQ(levels[DEPTH - 1 - i].ra, copy[i]);
}

TEST(a_call_moves_the_pointer_down_by_one_word)
{
	descend(0);
	for (int i = 1; i < DEPTH; i++)
		EXPECT_EQ(levels[i - 1].ssp - WORD, levels[i].ssp);
}

TEST(a_return_moves_the_pointer_back)
{
	unsigned long before = ss_pointer();

	descend(0);
	EXPECT_EQ(before, ss_pointer());
	EXPECT_EQ(before - WORD, levels[0].ssp);
}

TEST(entries_are_user_addresses_without_authentication_code)
{
	descend(0);
	for (int i = 0; i < DEPTH; i++)
		EXPECT_EQ(0, copy[i] >> 47);
}

#ifdef __ARM_FEATURE_PAC_DEFAULT
TEST(the_ordinary_stack_holds_the_same_addresses_signed)
{
	int same = 0;

	descend(0);
	for (int i = 0; i < DEPTH; i++)
		same += levels[i].slot == levels[i].ra;
	/* The few bits of a code may happen to equal those of the address. */
	EXPECT_GT(DEPTH / 2, same);
}
#endif

static unsigned long tail_ssp;

static int noinline tail_end(int a)
{
	tail_ssp = ss_pointer();
	return a + 1;
}

static int noinline tail_call(int a)
{
	return tail_end(a);
}

TEST(a_tail_call_leaves_no_entry)
{
	int (*volatile direct)(int) = tail_end;
	unsigned long ssp;

	direct(1);
	ssp = tail_ssp;
	tail_ssp = 0;
	tail_call(1);
	EXPECT_EQ(ssp, tail_ssp);
}

TEST(the_pointer_is_word_aligned_and_inside_a_shadow_mapping)
{
	struct mapping map;

	EXPECT_EQ(0, ss_pointer() % WORD);
	ASSERT_TRUE(find_mapping(ss_pointer() - WORD, &map));
	EXPECT_TRUE(map.shadow);
}

TEST(smaps_shows_a_shadow_stack_as_rw_p_and_ss)
{
	struct mapping map;

	ASSERT_TRUE(find_mapping(start - WORD, &map));
	EXPECT_STREQ("rw-p", map.perms);
	EXPECT_TRUE(map.shadow);
}

TEST(the_ordinary_stack_is_not_marked_ss)
{
	struct mapping map;

	ASSERT_TRUE(find_mapping((unsigned long)&map, &map));
	EXPECT_FALSE(map.shadow);
}

/* ---- The ends ---- */

TEST(the_pointer_starts_at_the_end_less_the_end_words)
{
	struct mapping map;

	ASSERT_TRUE(find_mapping(start - WORD, &map));
	EXPECT_EQ(map.end - SS_END_WORDS * WORD, start);
}

#if SS_END_WORDS
TEST(the_end_word_is_zero)
{
	struct mapping map;

	ASSERT_TRUE(find_mapping(start - WORD, &map));
	EXPECT_EQ(0, peek(map.end - WORD));
}
#else
TEST(no_end_word_the_outermost_entry_is_the_last_word)
{
	struct mapping map;

	ASSERT_TRUE(find_mapping(start - WORD, &map));
	EXPECT_EQ(map.end, start);
#ifndef __riscv
	/* The caller of main() is the harness. */
	EXPECT_NE(0, peek(map.end - WORD));
#endif
}
#endif

TEST(unused_words_are_zero)
{
	struct mapping map;

	ASSERT_TRUE(find_mapping(start - WORD, &map));
	EXPECT_EQ(0, peek(map.start));
	EXPECT_EQ(0, peek(map.start + 4096));
}

TEST(the_size_follows_rlimit_stack)
{
	unsigned long page = getpagesize();
	struct mapping map;
	struct rlimit rlim;

	ASSERT_EQ(0, getrlimit(RLIMIT_STACK, &rlim));
	ASSERT_TRUE(find_mapping(start - WORD, &map));
	TH_LOG("%lu KiB for a stack of %lu KiB", (map.end - map.start) / 1024,
	       (unsigned long)rlim.rlim_cur / 1024);
	EXPECT_EQ(ss_size(rlim.rlim_cur, page), map.end - map.start);
}

/*
 * ---- Sizes: each is that of a program of its own, as only exec starts without a shadow stack ----
 */

static int report_size(const char *limit)
{
	struct rlimit rlim = { .rlim_cur = strtoul(limit, NULL, 0) };
	struct mapping map = { 0 };
	long err;

	rlim.rlim_max = rlim.rlim_cur;
	if (setrlimit(RLIMIT_STACK, &rlim))
		return 1;
	err = ss_enable(SS_ENABLE);
	if (!err)
		find_mapping(ss_pointer() - WORD, &map);
	printf("%ld %lu\n", err, map.end - map.start);
	fflush(NULL);
	_exit(0);
}

/* Prints whether the mapping is still there after enabling and disabling. */
static int report_disable(void)
{
	struct mapping map;
	unsigned long end;

	if (ss_enable(SS_ENABLE))
		return 1;
	end = ss_pointer();
	if (ss_disable(SS_ENABLE))
		return 1;
	printf("%d\n", find_mapping(end - WORD, &map) && map.shadow);
	fflush(NULL);
	_exit(0);
}

TEST(disabling_unmaps_the_stack_except_on_arm64)
{
	char out[64];

	ASSERT_TRUE(run_self("--disable", "", out, sizeof(out)));
	EXPECT_EQ(SS_DISABLE_KEEPS, atoi(out));
}

/* Returns the errno of enabling with a stack limit of @limit bytes, or 0 and the @size. */
static long size_with_limit(unsigned long limit, unsigned long *size)
{
	char arg[32], out[64];
	long err;

	snprintf(arg, sizeof(arg), "%lu", limit);
	if (!run_self("--size", arg, out, sizeof(out)) || sscanf(out, "%ld %lu", &err, size) != 2)
		return -ECHILD;
	return err;
}

FIXTURE(size){};
FIXTURE_SETUP(size)
{
}
FIXTURE_TEARDOWN(size)
{
}
FIXTURE_VARIANT(size)
{
	unsigned long limit;
};
FIXTURE_VARIANT_ADD(size, of_64_KiB){ .limit = 64 << 10 };
FIXTURE_VARIANT_ADD(size, off_a_page_boundary){ .limit = 100001 };
FIXTURE_VARIANT_ADD(size, of_8_MiB){ .limit = 8 << 20 };
FIXTURE_VARIANT_ADD(size, of_one_page){ .limit = 4096 };

TEST_F(size, follows_the_stack_limit)
{
	unsigned long size = 0;

	EXPECT_EQ(0, size_with_limit(variant->limit, &size));
	EXPECT_EQ(ss_size(variant->limit, getpagesize()), size);
}

TEST(size_with_a_stack_limit_of_0)
{
	unsigned long expected = ss_size(0, getpagesize());
	unsigned long size = 0;

	EXPECT_EQ(expected ? 0 : SS_NO_SIZE, size_with_limit(0, &size));
	EXPECT_EQ(expected, size);
}

static bool overcommit(const char *mode)
{
	FILE *file = fopen("/proc/sys/vm/overcommit_memory", "we");
	bool ok = file && fputs(mode, file) >= 0;

	return file && !fclose(file) && ok;
}

TEST(size_without_a_stack_limit_is_capped_and_counts_as_memory)
{
	unsigned long cap = ss_size(RLIM_INFINITY, getpagesize());
	unsigned long ram = sysconf(_SC_PHYS_PAGES) * getpagesize();
	unsigned long size = 0;

	if (ram >= cap)
		SKIP(return, "this machine has too much memory");
	EXPECT_EQ(-ENOMEM, size_with_limit(RLIM_INFINITY, &size));
	if (!overcommit("1"))
		SKIP(return, "may not overcommit");
	EXPECT_EQ(0, size_with_limit(RLIM_INFINITY, &size));
	EXPECT_EQ(cap, size);
	overcommit("0");
}

/* ---- Neighbours ---- */

#define PAIRS 64

TEST(a_page_below_is_left_free)
{
	unsigned long page = getpagesize();
	unsigned long at[PAIRS];

	for (int i = 0; i < PAIRS; i++) {
		at[i] = ss_map(0, page, 0);
		ASSERT_LT(0, (long)at[i]);
		for (int j = 0; j < i; j++) {
			EXPECT_NE(at[j] + page, at[i]);
			EXPECT_NE(at[i] + page, at[j]);
		}
	}
}

TEST(what_lies_above_may_be_any_other_mapping)
{
	unsigned long page = getpagesize();
	bool adjoins = false;
	uint64_t *above;
	unsigned long ss;

	for (int i = 0; i < PAIRS && !adjoins; i++) {
		above = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			     0);
		ASSERT_NE(MAP_FAILED, above);
		*above = 0x1234;
		ss = ss_map(0, page, 0);
		ASSERT_LT(0, (long)ss);
		adjoins = ss + page == (unsigned long)above;
	}
	ASSERT_TRUE(adjoins);
	EXPECT_EQ(0x1234, peek(ss + page));
}

TEST(a_fixed_mapping_may_adjoin_below)
{
	unsigned long page = getpagesize();
	unsigned long room, ss;
	void *below;

	room = (unsigned long)mmap(NULL, 4 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_EQ(0, munmap((void *)room, 4 * page));
	ss = ss_map(room + 2 * page, page, 0);
	ASSERT_EQ(room + 2 * page, ss);
	below = mmap((void *)(ss - page), page, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	EXPECT_EQ(ss - page, (unsigned long)below);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--size"))
		return report_size(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "--disable"))
		return report_disable();
	START_SHADOW_STACK(0);
	start = ss_pointer();
	exit(test_harness_run(argc, argv));
}
