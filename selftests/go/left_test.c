// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * left_test.c - `shstk trace --goroutines` of a goroutine that waits and has not been given up by
 * its thread yet: is its stack the one that the thread is on?
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "selftests/go/runtime.h"
#include "tools/trace/goroutines.h"

#include "kselftest_harness.h"

#define DEPTH 16
#define TID 77
#define ALL_GS (SMALL_SIZE - 64) /* the list of all goroutines, in the program */
#define LIST 0x800 /* the elements of that list, in memory */

/* Offsets in g and m of releases that do not say them themselves. */
enum {
	G_STATUS = 144,
	G_ID = 152,
	M_PROCID = 72,
	WAITING = 4,
};

static uint8_t file[SMALL_SIZE];
static struct shstk_regs thread = { .size = sizeof(thread), .known = UINT32_MAX };

static int read_program(void *arg, uint64_t addr, void *buf, size_t len)
{
	(void)arg;
	if (addr >= PROGRAM && addr - PROGRAM <= SMALL_SIZE - len)
		memcpy(buf, file + (addr - PROGRAM), len);
	else if (addr >= MEMORY && addr - MEMORY <= MEMORY_SIZE - len)
		memcpy(buf, (void *)(uintptr_t)addr, len);
	else
		return -EFAULT;
	return 0;
}

static const struct shstk_regs *regs_of(void *arg, int tid)
{
	(void)arg;
	return tid == TID ? &thread : NULL;
}

/* Makes goroutine 7, which waits in main.park(), and the registers that it has saved. */
static bool make_goroutine(void)
{
	const uint64_t all[] = { MEMORY + LIST, 1, 1 };
	uint64_t sp = MEMORY + G_STACK + STACK_SIZE - 128;

	if (!make_thread())
		return false;
	make_program(file, program_arm64, EM_AARCH64, PROGRAM, SMALL_IN_DATA);
	memcpy(file + ALL_GS, all, sizeof(all));
	put(MEMORY + LIST, MEMORY + G);
	put(MEMORY + G + G_STATUS, WAITING);
	put(MEMORY + G + G_ID, 7);
	put(MEMORY + M + M_PROCID, TID);
	put(MEMORY + G + SCHED_SP, sp);
	put(MEMORY + G + SCHED_PC, PC(PARK, 2));
	put(sp, PC(GOEXIT, 1));
	return true;
}

/* Returns what is printed of all goroutines. */
static const char *printed(struct shstk_space *space)
{
	static char text[4096];
	const struct trace_opts opts = { .depth = DEPTH };
	const struct goroutine_source from = { &opts, space, read_program, NULL, regs_of };
	struct shstk_symbols *symbols;
	struct shstk_symproc *proc;
	struct goroutines *all;
	int out = dup(1), fd[2];
	ssize_t n = 0;

	if (pipe(fd) || shstk_symbols_create(NULL, &symbols) ||
	    shstk_symproc_create(symbols, 0, &proc) || goroutines_find(&from, &all))
		return "";
	fflush(stdout);
	dup2(fd[1], 1);
	if (!goroutines_take(all))
		goroutines_print(all, proc);
	fflush(stdout);
	dup2(out, 1);
	close(fd[1]);
	n = read(fd[0], text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	close(fd[0]);
	goroutines_destroy(all);
	shstk_symbols_destroy(symbols);
	return text;
}

/* clang-format off */
FIXTURE(left)
{
	struct shstk_space *space;
};

FIXTURE_SETUP(left)
{
	ASSERT_TRUE(make_goroutine());
	ASSERT_EQ(shstk_space_create(SHSTK_ARCH_ARM64, &self->space), 0);
	ASSERT_EQ(shstk_space_add_image(self->space, file, SMALL_SIZE, PROGRAM), 0);
}

FIXTURE_TEARDOWN(left)
{
	shstk_space_destroy(self->space);
	munmap((void *)(uintptr_t)MEMORY, MEMORY_SIZE);
}
/* clang-format on */

TEST_F(left, a_thread_on_its_own_stack_has_left_the_goroutine)
{
	const char *text;

	/* The thread is in runtime.schedule(), which the function that mcall called has called. */
	thread.r[28] = MEMORY + G0;
	thread.r[31] = MEMORY + G0_STACK + STACK_SIZE - 128;
	thread.pc = PC(SCHEDULE, 3);
	put(thread.r[31], PC(MCALL, 5));
	text = printed(self->space);
	EXPECT_NE(strstr(text, "goroutine 7 [waiting]:"), NULL);
	EXPECT_NE(strstr(text, "20001048"), NULL); /* in main.park() */
}

TEST_F(left, a_thread_on_the_goroutines_stack_has_not)
{
	const char *text;

	thread.r[28] = MEMORY + G;
	thread.r[31] = MEMORY + G_STACK + STACK_SIZE - 128;
	thread.pc = PC(CLOCK, 2);
	text = printed(self->space);
	EXPECT_NE(strstr(text, "goroutine 7 [waiting, thread 77]:"), NULL);
	EXPECT_EQ(strstr(text, "20001048"), NULL);
}

TEST_HARNESS_MAIN
