// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * token_test.c - shadow stacks made by map_shadow_stack(): tokens, switching
 */
#include "facts.h"
#include "kselftest_harness.h"

/* ---- What a new stack holds ---- */

/* The ways to ask map_shadow_stack(); sizes in bytes, offsets from the top. */
FIXTURE(mapped)
{
	unsigned long base;
	unsigned long top;
};

FIXTURE_VARIANT(mapped)
{
	unsigned long size;
	unsigned long flags;
	int token; /* words from the top to the token; 0: no token */
};

FIXTURE_VARIANT_ADD(mapped, plain){ .size = 4096 };
FIXTURE_VARIANT_ADD(mapped, with_token){
	.size = 4096,
	.flags = SS_SET_TOKEN,
	.token = 1,
};
FIXTURE_VARIANT_ADD(mapped, two_words_with_token){
	.size = 16,
	.flags = SS_SET_TOKEN,
	.token = 1,
};
FIXTURE_VARIANT_ADD(mapped, off_a_page_boundary_with_token){
	.size = 4096 + 24,
	.flags = SS_SET_TOKEN,
	.token = 1,
};
#if SS_HAS_MARKER
FIXTURE_VARIANT_ADD(mapped, with_token_and_marker){
	.size = 4096,
	.flags = SS_SET_TOKEN | SS_SET_MARKER,
	.token = 2,
};
FIXTURE_VARIANT_ADD(mapped, with_marker_alone){
	.size = 4096,
	.flags = SS_SET_MARKER,
};
#endif

FIXTURE_SETUP(mapped)
{
	self->base = ss_map(0, variant->size, variant->flags);
	ASSERT_LT(0, (long)self->base);
	self->top = self->base + variant->size;
}

FIXTURE_TEARDOWN(mapped)
{
	munmap((void *)self->base, variant->size);
}

TEST_F(mapped, the_token_is_the_last_word_below_size_and_marker)
{
	unsigned long at = self->top - variant->token * WORD;

	/* Without a token, any word will do to see that there is none. */
	if (!variant->token)
		at -= WORD;
	EXPECT_EQ(variant->token ? ss_token(at) : 0, peek(at));
}

TEST_F(mapped, all_other_words_are_zero)
{
	unsigned long at = self->top - variant->token * WORD;

	for (unsigned long addr = self->base; addr < self->top; addr += WORD)
		if (!variant->token || addr != at)
			ASSERT_EQ(0, peek(addr));
}

TEST_F(mapped, the_mapping_is_whole_pages_marked_ss)
{
	struct mapping map;

	ASSERT_TRUE(find_mapping(self->base, &map));
	EXPECT_TRUE(map.shadow);
	EXPECT_STREQ("rw-p", map.perms);
	/* Two such mappings never merge, because a page is left free below each. */
	EXPECT_EQ(self->base, map.start);
	EXPECT_EQ((variant->size + 4095) & ~4095UL, map.end - map.start);
}

/* ---- Switching ---- */

#define SIZE 4096UL

/* Maps a new stack with a token. Returns its base, and the address of the token. */
static unsigned long new_stack(unsigned long *token)
{
	unsigned long base = ss_map(0, SIZE, SS_SET_TOKEN);

	*token = base + SIZE - WORD;
	return base;
}

TEST(a_switch_leaves_the_pointer_above_the_new_stacks_token)
{
	unsigned long token, old, inside, after, before = ss_pointer();

	new_stack(&token);
	old = ss_switch(token);
	inside = ss_pointer();
	ss_switch(old);
	after = ss_pointer();
	EXPECT_EQ(token + WORD, inside);
	EXPECT_EQ(before, after);
}

TEST(a_switch_leaves_a_token_below_the_old_stacks_entries)
{
	unsigned long token, old, before = ss_pointer();
	uint64_t word;

	new_stack(&token);
	old = ss_switch(token);
	word = peek(before - WORD);
	ss_switch(old);
	EXPECT_EQ(before - WORD, old);
	EXPECT_EQ(ss_token(before - WORD), word);
}

TEST(a_switch_uses_its_token_up)
{
	unsigned long token, old;
	uint64_t word;

	new_stack(&token);
	old = ss_switch(token);
	word = peek(token);
	ss_switch(old);
	EXPECT_NE(ss_token(token), word);
}

TEST(a_switch_back_leaves_a_token_for_the_next_one)
{
	unsigned long token, old, again;

	new_stack(&token);
	old = ss_switch(token);
	again = ss_switch(old);
	EXPECT_EQ(token, again);
	EXPECT_EQ(ss_token(token), peek(token));
	old = ss_switch(token);
	ss_switch(old);
}

static uint64_t noinline one_call(unsigned long *ssp)
{
	uint64_t ra = RETURN_ADDRESS();

	ss_enter(ra);
	*ssp = ss_pointer();
	ss_leave(ra);
	return ra;
}

TEST(after_a_switch_calls_push_on_the_new_stack)
{
	unsigned long token, old, ssp = 0;
	uint64_t ra, word;

	new_stack(&token);
	old = ss_switch(token);
	ra = one_call(&ssp);
	word = peek(ssp);
	ss_switch(old);
	EXPECT_EQ(token, ssp);
	EXPECT_EQ(ra, word);
}

TEST(the_new_stack_holds_no_trace_of_the_old_one)
{
	unsigned long token, old, base = new_stack(&token), ssp = 0;
	int words = 0;
	uint64_t ra;

	old = ss_switch(token);
	ra = one_call(&ssp);
	ss_switch(old);
	for (unsigned long a = base; a < token; a += WORD)
		words += peek(a) != 0;
	/* The token is back where the one call had pushed its entry. */
	EXPECT_EQ(ss_token(token), peek(token));
	EXPECT_EQ(0, words);
	EXPECT_NE(0, ra);
}

#ifndef __riscv
/* An interrupt between the two instructions of a switch would find this. */
TEST(in_the_middle_of_a_switch_the_new_stack_remembers_the_old_pointer)
{
	unsigned long token, inside, before = ss_pointer();
	uint64_t word, old;

	new_stack(&token);
	ss_switch_begin(token);
	inside = ss_pointer();
	word = peek(token);
	old = peek(before - WORD);
	ss_switch(ss_switch_end(before));
	EXPECT_EQ(token, inside);
	EXPECT_EQ(ss_half_token(before), word);
	/* The old stack has no token yet. */
	EXPECT_NE(ss_token(before - WORD), old);
	EXPECT_EQ(before, ss_pointer());
}
#endif

static void switch_to(void *arg)
{
	ss_switch((unsigned long)arg);
	ss_syscall(__NR_exit_group, 0, 0, 0, 0, 0);
}

/* The architectures check tokens in hardware, and report a bad one differently. */
#if defined(__riscv)
#define BAD_TOKEN_SIGNAL SIGTRAP /* a software check, see ss_switch() */
#define BAD_TOKEN_CODE TRAP_BRKPT
#else
#define BAD_TOKEN_SIGNAL SIGSEGV
#define BAD_TOKEN_CODE SEGV_CPERR
#endif

TEST(a_switch_to_a_token_works_once_in_a_child)
{
	unsigned long token;

	new_stack(&token);
	EXPECT_EQ(0, run_child(switch_to, (void *)token).signo);
}

TEST(a_switch_to_a_word_that_is_no_token_faults)
{
	unsigned long token;
	struct ending end;

	new_stack(&token);
	end = run_child(switch_to, (void *)(token - WORD));
	EXPECT_EQ(BAD_TOKEN_SIGNAL, end.signo);
	EXPECT_EQ(BAD_TOKEN_CODE, end.code);
}

static void switch_twice(void *arg)
{
	ss_switch((unsigned long)arg);
	ss_switch((unsigned long)arg);
	ss_syscall(__NR_exit_group, 0, 0, 0, 0, 0);
}

TEST(a_switch_to_a_token_that_was_used_faults)
{
	unsigned long token;
	struct ending end;

	new_stack(&token);
	end = run_child(switch_twice, (void *)token);
	EXPECT_EQ(BAD_TOKEN_SIGNAL, end.signo);
	EXPECT_EQ(BAD_TOKEN_CODE, end.code);
}

#ifndef __riscv
TEST(a_switch_to_ordinary_memory_faults_whatever_it_holds)
{
	static uint64_t words[512] __attribute__((aligned(4096)));
	struct ending end;

	words[256] = ss_token((unsigned long)&words[256]);
	end = run_child(switch_to, &words[256]);
	EXPECT_EQ(SIGSEGV, end.signo);
	EXPECT_EQ(SEGV_ACCERR, end.code);
}
#endif

/* ---- Contexts: makecontext() and swapcontext() by hand ---- */

#define TURNS 3

static struct ss_context main_context, other_context;
static unsigned long turn_ssp[TURNS];
static int turns;

static void noinline yield(int turn)
{
	uint64_t ra = RETURN_ADDRESS();

	ss_enter(ra);
	turn_ssp[turn] = ss_pointer();
	turns++;
	ss_swapcontext(&other_context, &main_context);
	ss_leave(ra);
}

static noinline __attribute__((noreturn)) void other_main(void)
{
	for (int i = 0; i < TURNS; i++)
		yield(i);
	for (;;)
		ss_swapcontext(&other_context, &main_context);
}

static unsigned long make_context(void)
{
	static char stack[64 << 10] __attribute__((aligned(16)));
	unsigned long base = new_stack(&other_context.token);

	other_context.sp = SS_ENTRY_SP((unsigned long)stack + sizeof(stack));
	other_context.fp = 0;
	other_context.pc = (unsigned long)other_main;
	turns = 0;
	return base;
}

TEST(two_contexts_take_turns_each_on_its_own_shadow_stack)
{
	unsigned long base, before;

	base = make_context();
	before = ss_pointer();
	for (int i = 0; i < TURNS; i++) {
		ss_swapcontext(&main_context, &other_context);
		ASSERT_EQ(i + 1, turns);
		EXPECT_EQ(before, ss_pointer());
		EXPECT_EQ(base + SIZE - WORD, turn_ssp[i]);
	}
}

TEST(a_suspended_context_is_its_entries_below_a_token)
{
	unsigned long base = make_context();

	ss_swapcontext(&main_context, &other_context);
	EXPECT_EQ(turn_ssp[0] - WORD, other_context.token);
	EXPECT_EQ(ss_token(other_context.token), peek(other_context.token));
	/* The return address into other_main(), and then the end of the mapping. */
	EXPECT_EQ(base + SIZE, turn_ssp[0] + WORD);
	EXPECT_NE(0, peek(turn_ssp[0]));
}

TEST(a_running_context_left_a_token_on_the_old_stack)
{
	unsigned long before = ss_pointer();

	make_context();
	ss_swapcontext(&main_context, &other_context);
	/* The token was consumed when the other context switched back. */
	EXPECT_EQ(before - WORD, main_context.token);
}

/* ---- The mapping as such ---- */

TEST(a_shadow_stack_can_be_unmapped)
{
	unsigned long base = ss_map(0, SIZE, 0);
	struct mapping map;

	EXPECT_EQ(0, munmap((void *)base, SIZE));
	EXPECT_FALSE(find_mapping(base, &map));
}

TEST(mprotect_takes_reading_away_and_gives_it_back)
{
	unsigned long token, base = new_stack(&token);
	struct mapping map;

	EXPECT_EQ(0, mprotect((void *)base, SIZE, PROT_NONE));
	EXPECT_EQ(0, mprotect((void *)base, SIZE, PROT_READ | PROT_WRITE));
	ASSERT_TRUE(find_mapping(base, &map));
	EXPECT_TRUE(map.shadow);
	EXPECT_EQ(ss_token(token), peek(token));
}

TEST(mprotect_to_executable_is_refused_on_arm64_only)
{
	unsigned long base = ss_map(0, SIZE, 0);
	int err = mprotect((void *)base, SIZE, PROT_READ | PROT_EXEC) ? errno : 0;

	EXPECT_EQ(SS_MPROTECT_EXEC, err);
}

TEST(ordinary_memory_cannot_become_a_shadow_stack_by_mmap)
{
	unsigned long page = getpagesize();
	void *addr = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct mapping map;

	ASSERT_NE(MAP_FAILED, addr);
	ASSERT_TRUE(find_mapping((unsigned long)addr, &map));
	EXPECT_FALSE(map.shadow);
	EXPECT_EQ(-EEXIST, (long)ss_map((unsigned long)addr, page, 0));
}

int main(int argc, char **argv)
{
	START_SHADOW_STACK(0);
	exit(test_harness_run(argc, argv));
}
