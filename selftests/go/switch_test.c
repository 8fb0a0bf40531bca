// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * switch_test.c - from one stack of a Go program to the next, at places that a running program
 * is seldom seen at: its code, its table, its stacks and what its runtime notes are made here.
 */
#include <errno.h>

#include "shstk.h"
#include "selftests/go/runtime.h"

#include "kselftest_harness.h"

#define MAX 16

static int read_memory(void *arg, uint64_t addr, void *buf, size_t len)
{
	(void)arg;
	if (addr < MEMORY || addr - MEMORY > MEMORY_SIZE - len)
		return -EFAULT;
	memcpy(buf, (void *)(uintptr_t)addr, len);
	return 0;
}

/* clang-format off */
FIXTURE(arm64)
{
	struct shstk_space *space;
	struct shstk_regs regs;
	uint64_t pcs[MAX];
	uint8_t marks[MAX];
	struct shstk_info info;
	uint64_t sp; /* stack pointer in the innermost frame that put_frame() made */
	uint64_t x3;
};

FIXTURE_SETUP(arm64)
{
	static uint8_t file[SMALL_SIZE];

	ASSERT_TRUE(make_thread());
	ASSERT_EQ(shstk_space_create(SHSTK_ARCH_ARM64, &self->space), 0);
	make_program(file, program_arm64, EM_AARCH64, PROGRAM, SMALL_READ_ONLY);
	ASSERT_EQ(shstk_space_add_image(self->space, file, SMALL_SIZE, PROGRAM), 0);
	memset(file, 0, sizeof(file));
	make_program(file, vdso, EM_AARCH64, VDSO, SMALL_WITHOUT);
	ASSERT_EQ(shstk_space_add_image(self->space, file, SMALL_SIZE, VDSO), 0);
}

FIXTURE_TEARDOWN(arm64)
{
	shstk_space_destroy(self->space);
	munmap((void *)(uintptr_t)MEMORY, MEMORY_SIZE);
}
/* clang-format on */

/* Makes the stack at @lo empty. */
static void begin_stack(FIXTURE_DATA(arm64) * self, uint64_t lo)
{
	self->sp = MEMORY + lo + STACK_SIZE - 64;
}

/* Adds a frame of a function that returns to @link. */
static void put_frame(FIXTURE_DATA(arm64) * self, uint64_t link)
{
	self->sp -= 32;
	put(self->sp, link);
}

static int trace(FIXTURE_DATA(arm64) * self, uint64_t pc, uint64_t link, uint64_t g)
{
	struct shstk_opts opts = { .size = sizeof(opts), .marks = self->marks };

	self->regs = (struct shstk_regs){ .size = sizeof(self->regs), .known = UINT32_MAX };
	self->regs.pc = pc;
	self->regs.r[31] = self->sp;
	self->regs.r[3] = self->x3;
	self->regs.r[30] = link;
	self->regs.r[28] = g;
	self->info.size = sizeof(self->info);
	return shstk_unwind(self->space, &self->regs, read_memory, NULL, self->pcs, MAX, &opts,
			    &self->info);
}

#define EXPECT_TRACE(n, ...)                                       \
	do {                                                       \
		const uint64_t want[] = { __VA_ARGS__ };           \
		unsigned int i;                                    \
		ASSERT_EQ(n, (int)(sizeof(want) / sizeof(*want))); \
		for (i = 0; i < sizeof(want) / sizeof(*want); i++) \
			EXPECT_EQ(self->pcs[i], want[i]);          \
		EXPECT_EQ(self->info.end, SHSTK_END_COMPLETE);     \
	} while (0)

/* Unwinds from the vdso on g0, which main.clock() called on the goroutine's stack. */
static int trace_clock(FIXTURE_DATA(arm64) * self, uint64_t noted_pc)
{
	begin_stack(self, G_STACK);
	put_frame(self, PC(GOEXIT, 1));
	put(MEMORY + M + M_VDSO_SP, self->sp);
	put(MEMORY + M + M_VDSO_PC, noted_pc);
	put_frame(self, PC(CLOCK, 2));
	begin_stack(self, G0_STACK);
	put_frame(self, 0);
	put(self->sp + 8, PC(NANOTIME, 3));
	return trace(self, IN_VDSO, 1, MEMORY + G);
}

TEST_F(arm64, what_noted_that_it_calls_the_vdso_is_no_guess)
{
	int n = trace_clock(self, PC(CLOCK, 2));

	EXPECT_TRACE(n, IN_VDSO, PC(NANOTIME, 3), PC(CLOCK, 2), PC(GOEXIT, 1));
	EXPECT_EQ(self->marks[1], 0);
	EXPECT_EQ(self->info.guessed, 0);
}

TEST_F(arm64, it_is_a_guess_if_another_function_noted_that)
{
	trace_clock(self, PC(PARK, 2));
	EXPECT_EQ(self->pcs[1], PC(NANOTIME, 3));
	EXPECT_EQ(self->marks[1], SHSTK_MARK_GUESS);
}

TEST_F(arm64, it_is_a_guess_if_nothing_was_noted)
{
	trace_clock(self, 0);
	EXPECT_EQ(self->pcs[1], PC(NANOTIME, 3));
	EXPECT_EQ(self->marks[1], SHSTK_MARK_GUESS);
}

TEST_F(arm64, the_vdso_is_called_on_g0_too)
{
	int n;

	begin_stack(self, G0_STACK);
	put_frame(self, PC(MCALL, 5));
	put(MEMORY + M + M_VDSO_SP, self->sp);
	put(MEMORY + M + M_VDSO_PC, PC(SCHEDULE, 2));
	put_frame(self, PC(SCHEDULE, 2));
	put_frame(self, 0);
	put(self->sp + 8, PC(NANOTIME, 3));
	n = trace(self, IN_VDSO, 1, MEMORY + G0);
	EXPECT_TRACE(n, IN_VDSO, PC(NANOTIME, 3), PC(SCHEDULE, 2), PC(MCALL, 5));
	EXPECT_EQ(self->info.guessed, 0);
}

/*
 * Makes a stack on which main.park() has called runtime.mcall(), which notes where it was called.
 */
static void put_park(FIXTURE_DATA(arm64) * self, uint64_t saved_pc)
{
	begin_stack(self, G_STACK);
	put_frame(self, PC(GOEXIT, 1));
	put(MEMORY + G + SCHED_SP, self->sp);
	put(MEMORY + G + SCHED_PC, saved_pc);
}

TEST_F(arm64, mcall_has_its_caller_still_where_it_lost_its_return_address)
{
	int n;

	put_park(self, PC(PARK, 2));
	n = trace(self, PC(SAVE_G, 0), PC(MCALL, 2), MEMORY + G0);
	EXPECT_TRACE(n, PC(SAVE_G, 0), PC(MCALL, 2), PC(PARK, 2), PC(GOEXIT, 1));
	n = trace(self, PC(MCALL, 2), PC(MCALL, 2), MEMORY + G0);
	EXPECT_TRACE(n, PC(MCALL, 2), PC(PARK, 2), PC(GOEXIT, 1));
	n = trace(self, PC(MCALL, 0), PC(PARK, 2), MEMORY + G);
	EXPECT_TRACE(n, PC(MCALL, 0), PC(PARK, 2), PC(GOEXIT, 1));
	EXPECT_EQ(self->info.guessed, 0);
}

TEST_F(arm64, mcall_is_left_by_what_is_noted_only_if_that_is_right)
{
	int n;

	put_park(self, PC(MCALL, 2)); /* a trace through this would never end */
	n = trace(self, PC(MCALL, 2), PC(MCALL, 2), MEMORY + G0);
	EXPECT_EQ(n, 1);
	EXPECT_EQ(self->info.end, SHSTK_END_BAD_STACK);
	put_park(self, PC(PARK, 1)); /* an address that does not follow a call */
	n = trace(self, PC(MCALL, 2), PC(MCALL, 2), MEMORY + G0);
	EXPECT_EQ(n, 1);
	EXPECT_EQ(self->info.end, SHSTK_END_BAD_STACK);
	put_park(self, PC(PARK, 2));
	put(MEMORY + G + SCHED_SP, self->sp - 8); /* a stack pointer of another time */
	n = trace(self, PC(SAVE_G, 0), PC(MCALL, 2), MEMORY + G0);
	EXPECT_EQ(n, 2);
	EXPECT_EQ(self->info.end, SHSTK_END_BAD_STACK);
}

TEST_F(arm64, gogo_goes_on_with_the_goroutine_once_its_return_address_is_lost)
{
	int n;

	put_park(self, PC(PARK, 2));
	begin_stack(self, G0_STACK);
	put_frame(self, PC(SCHEDULE, 3));
	n = trace(self, PC(SAVE_G, 0), PC(GOGO, 1), MEMORY + G);
	EXPECT_TRACE(n, PC(SAVE_G, 0), PC(GOGO, 1), PC(PARK, 2), PC(GOEXIT, 1));
	n = trace(self, PC(GOGO, 0), PC(EXECUTE, 2), MEMORY + G0);
	EXPECT_EQ(self->pcs[1], PC(EXECUTE, 2));
}

/* The goroutine is about to begin with a function, whose return address is in the register. */
TEST_F(arm64, gogo_gives_the_goroutine_its_return_address_back)
{
	int n;

	begin_stack(self, G_STACK);
	put(MEMORY + G + SCHED_SP, self->sp);
	put(MEMORY + G + SCHED_PC, PC(CLOCK, 0));
	put(MEMORY + G + SCHED_LR, PC(GOEXIT, 1));
	n = trace(self, PC(GOGO, 2), PC(GOGO, 1), MEMORY + G);
	EXPECT_TRACE(n, PC(GOGO, 2), PC(CLOCK, 0), PC(GOEXIT, 1));
	put(MEMORY + G + SCHED_LR, 0);
	n = trace(self, PC(GOGO, 3), PC(GOEXIT, 1), MEMORY + G);
	EXPECT_TRACE(n, PC(GOGO, 3), PC(CLOCK, 0), PC(GOEXIT, 1));
}

/*
 * Makes main.grow(), which main.run() called, ask for more stack before it has a frame: its return
 * address is in x3, and once that register has other uses, the goroutine has it noted.
 */
static void put_grow(FIXTURE_DATA(arm64) * self)
{
	begin_stack(self, G_STACK);
	put_frame(self, PC(GOEXIT, 1));
	self->x3 = PC(RUN, 2);
}

TEST_F(arm64, who_asks_for_more_stack_has_its_return_address_in_a_register)
{
	int n;

	put_grow(self);
	n = trace(self, PC(NOCTXT, 0), PC(GROW, 2), MEMORY + G);
	EXPECT_TRACE(n, PC(NOCTXT, 0), PC(GROW, 2), PC(RUN, 2), PC(GOEXIT, 1));
	n = trace(self, PC(NOCTXT, 1), PC(GROW, 2), MEMORY + G);
	EXPECT_TRACE(n, PC(NOCTXT, 1), PC(GROW, 2), PC(RUN, 2), PC(GOEXIT, 1));
	n = trace(self, PC(MORESTACK, 0), PC(GROW, 2), MEMORY + G);
	EXPECT_TRACE(n, PC(MORESTACK, 0), PC(GROW, 2), PC(RUN, 2), PC(GOEXIT, 1));
	EXPECT_EQ(self->info.guessed, 0);
}

TEST_F(arm64, who_asks_for_more_stack_is_noted_before_that_register_is_lost)
{
	int n;

	put_grow(self);
	put(MEMORY + G + SCHED_SP, self->sp);
	put(MEMORY + G + SCHED_PC, PC(GROW, 2));
	put(MEMORY + G + SCHED_LR, self->x3);
	self->x3 = 0;
	n = trace(self, PC(SAVE_G, 0), PC(MORESTACK, 2), MEMORY + G0);
	EXPECT_TRACE(n, PC(SAVE_G, 0), PC(MORESTACK, 2), PC(GROW, 2), PC(RUN, 2), PC(GOEXIT, 1));
	n = trace(self, PC(MORESTACK, 2), PC(MORESTACK, 2), MEMORY + G0);
	EXPECT_TRACE(n, PC(MORESTACK, 2), PC(GROW, 2), PC(RUN, 2), PC(GOEXIT, 1));
	put(MEMORY + G + SCHED_SP, self->sp - 8); /* a stack pointer of another time */
	trace(self, PC(SAVE_G, 0), PC(MORESTACK, 2), MEMORY + G0);
	EXPECT_EQ(self->info.end, SHSTK_END_BAD_STACK);
}

/* ---- What the program says of itself does not agree ---- */

/* Makes main.run() on the goroutine's stack, which was left for g0 there. */
static void put_run(FIXTURE_DATA(arm64) * self, uint64_t saved_pc)
{
	begin_stack(self, G_STACK);
	put_frame(self, PC(GOEXIT, 1));
	put_frame(self, PC(RUN, 2));
	put(MEMORY + G + SCHED_SP, self->sp);
	put(MEMORY + G + SCHED_PC, saved_pc);
}

/* Unwinds from main.work() on g0, below the frame of a function. */
static int trace_work(FIXTURE_DATA(arm64) * self, uint64_t in_function, uint64_t link)
{
	begin_stack(self, G0_STACK);
	put_frame(self, 0);
	put_frame(self, link);
	put_frame(self, in_function);
	return trace(self, PC(WORK, 2), 1, MEMORY + G0);
}

static int trace_systemstack(FIXTURE_DATA(arm64) * self)
{
	put_run(self, PC(SYSTEMSTACK, 0));
	return trace_work(self, PC(SYSTEMSTACK, 2), 0);
}

static int trace_morestack(FIXTURE_DATA(arm64) * self)
{
	put_run(self, PC(RUN, 1));
	self->sp += 32;
	put(MEMORY + G + SCHED_SP, self->sp);
	return trace_work(self, PC(MORESTACK, 2), 0);
}

/*
 * Unwinds from below the frame of asmcgocall, which notes how far from its stack's end the
 * goroutine is.
 */
static int trace_asmcgocall_noting(FIXTURE_DATA(arm64) * self, uint64_t g, uint64_t depth)
{
	put_run(self, PC(SYSTEMSTACK, 0));
	begin_stack(self, G0_STACK);
	put_frame(self, g);
	put(self->sp + 8, depth);
	put_frame(self, PC(ASMCGOCALL, 2));
	return trace(self, PC(WORK, 2), 1, MEMORY + G0);
}

static int trace_asmcgocall(FIXTURE_DATA(arm64) * self)
{
	return trace_asmcgocall_noting(self, MEMORY + G, 64 + 32 + 32);
}

/*
 * Unwinds from main.work(), which C on g0 called: it runs on the goroutine's stack below main.run()
 * through cgocallback. Its frame on g0 is main.clock()'s, which stands for C.
 */
static int trace_cgocallback(FIXTURE_DATA(arm64) * self)
{
	uint64_t sp;

	begin_stack(self, G0_STACK);
	put_frame(self, PC(GOEXIT, 1));
	put_frame(self, PC(CLOCK, 2));
	put(self->sp + 16, self->sp + 512); /* the stack pointer of an earlier callback */
	put(MEMORY + G0 + SCHED_SP, self->sp);
	begin_stack(self, G_STACK);
	put_frame(self, PC(GOEXIT, 1));
	put_frame(self, PC(RUN, 2));
	sp = self->sp;
	put_frame(self, PC(CGOCALLBACK, 2));
	put(MEMORY + G + SCHED_SP, sp);
	return trace(self, PC(WORK, 2), 1, MEMORY + G);
}

TEST_F(arm64, undamaged_each_switch_leads_to_the_goroutine)
{
	int n = trace_systemstack(self);

	EXPECT_TRACE(n, PC(WORK, 2), PC(SYSTEMSTACK, 2), PC(RUN, 2), PC(GOEXIT, 1));
	n = trace_morestack(self);
	EXPECT_TRACE(n, PC(WORK, 2), PC(MORESTACK, 2), PC(RUN, 1), PC(GOEXIT, 1));
	n = trace_asmcgocall(self);
	EXPECT_TRACE(n, PC(WORK, 2), PC(ASMCGOCALL, 2), PC(RUN, 2), PC(GOEXIT, 1));
	n = trace_cgocallback(self);
	EXPECT_TRACE(n, PC(WORK, 2), PC(CGOCALLBACK, 2), PC(CLOCK, 2), PC(GOEXIT, 1));
}

/* One word of a description that is wrong. */
struct damage {
	const char *what;
	uint64_t at, value;
};

static const struct damage of_goroutine[] = {
	{ "it runs on another thread", G + G_M, MEMORY + G0 },
	{ "it does not point at itself", G + SCHED_G, MEMORY + G0 },
	{ "its stack has no end", G + G_HI, 0 },
};

static const struct damage of_saved_sp[] = {
	{ "above the stack", G + SCHED_SP, MEMORY + G_STACK + STACK_SIZE + 16 },
	{ "below the stack", G + SCHED_SP, MEMORY + G_STACK - 64 },
	{ "at no word", G + SCHED_SP, MEMORY + G_STACK + 1028 },
};

typedef int trace_fn(FIXTURE_DATA(arm64) * self);

/* Returns whether the trace that @make prepares ends at the switch of stacks, with this damage. */
static bool ends_at_switch(FIXTURE_DATA(arm64) * self, trace_fn *make, const struct damage *d)
{
	struct shstk_opts opts = { .size = sizeof(opts), .marks = self->marks };
	uint64_t kept;
	int n;

	make(self);
	memcpy(&kept, (void *)(uintptr_t)(MEMORY + d->at), sizeof(kept));
	put(MEMORY + d->at, d->value);
	n = shstk_unwind(self->space, &self->regs, read_memory, NULL, self->pcs, MAX, &opts,
			 &self->info);
	put(MEMORY + d->at, kept);
	if (n == 2 && self->info.end == SHSTK_END_BAD_STACK)
		return true;
	printf("# %s: %d entries, end %d\n", d->what, n, self->info.end);
	return false;
}

#define EXPECT_EACH_ENDS(make, damages)                                           \
	do {                                                                      \
		for (size_t i = 0; i < sizeof(damages) / sizeof(*(damages)); i++) \
			EXPECT_TRUE(ends_at_switch(self, make, &(damages)[i]));   \
	} while (0)

TEST_F(arm64, systemstack_is_left_only_for_a_goroutine_that_agrees)
{
	EXPECT_EACH_ENDS(trace_systemstack, of_goroutine);
	EXPECT_EACH_ENDS(trace_systemstack, of_saved_sp);
}

TEST_F(arm64, morestack_is_left_only_for_a_goroutine_that_agrees)
{
	EXPECT_EACH_ENDS(trace_morestack, of_goroutine);
	EXPECT_EACH_ENDS(trace_morestack, of_saved_sp);
}

TEST_F(arm64, asmcgocall_is_left_only_for_a_goroutine_that_agrees)
{
	EXPECT_EACH_ENDS(trace_asmcgocall, of_goroutine);
}

/* If asmcgocall's frame notes nothing that can be true, it is left as systemstack is. */
TEST_F(arm64, asmcgocall_is_left_as_far_from_the_stacks_end_as_it_notes)
{
	int n = trace_asmcgocall_noting(self, MEMORY + G, STACK_SIZE);

	EXPECT_TRACE(n, PC(WORK, 2), PC(ASMCGOCALL, 2), PC(RUN, 2), PC(GOEXIT, 1));
	n = trace_asmcgocall_noting(self, MEMORY + G0_STACK, 64);
	EXPECT_TRACE(n, PC(WORK, 2), PC(ASMCGOCALL, 2), PC(RUN, 2), PC(GOEXIT, 1));
	put(MEMORY + M + M_CURG, 0);
	n = trace_asmcgocall_noting(self, MEMORY + G, STACK_SIZE);
	EXPECT_EQ(n, 2);
	EXPECT_EQ(self->info.end, SHSTK_END_BAD_STACK);
}

TEST_F(arm64, cgocallback_is_left_only_on_a_goroutine_that_agrees)
{
	/*
	 * With one of the other two damages it is not even seen that the thread runs the goroutine.
	 */
	EXPECT_TRUE(ends_at_switch(self, trace_cgocallback, &of_goroutine[1]));
}

/* While a thread gives a goroutine up, the goroutine first says that it has no thread. */
TEST_F(arm64, a_goroutine_that_is_given_up_is_no_longer_the_threads)
{
	struct shstk_opts opts = { .size = sizeof(opts), .marks = self->marks };
	int n;

	trace_morestack(self);
	put(MEMORY + G + G_M, 0);
	n = shstk_unwind(self->space, &self->regs, read_memory, NULL, self->pcs, MAX, &opts,
			 &self->info);
	EXPECT_TRACE(n, PC(WORK, 2), PC(MORESTACK, 2));
}

TEST_HARNESS_MAIN
