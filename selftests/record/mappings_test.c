// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * mappings_test.c - tests that a process of which a module could not be read for lack of memory has all of
 * its modules once there is memory. The program is made here.
 */
#include <errno.h>

#include "selftests/go/small_program.h"
#include "tools/convert/mappings.h"

#include "kselftest_harness.h"

#define PROGRAM 0x20000000ull
#define LIBRARY 0x28000000ull
#define STACK 0x30000000ull
#define FRAME 32
#define PC(f) (PROGRAM + SMALL_CODE + SMALL_FUNC_SIZE * (f) + 8)

enum {
	LEAF,
	WORK,
	GOEXIT,
};

static const struct small_func program[] = {
	{ "main.leaf", { 0 }, 0, 0 },
	{ "main.work", { 0 }, FRAME, 4 },
	{ "runtime.goexit", { 0 }, 0, 0 },
	{ NULL, { 0 }, 0, 0 },
};

static bool no_memory;

static int add(void *arg, pid_t pid, struct shstk_space *space, const struct mappings_map *map)
{
	static uint8_t file[SMALL_SIZE];

	(void)arg, (void)pid;
	if (no_memory)
		return -ENOMEM;
	memset(file, 0, sizeof(file));
	make_program(file, program, EM_AARCH64, map->start, SMALL_READ_ONLY);
	return shstk_space_add_image(space, file, sizeof(file), map->start);
}

static struct mappings *map_both(void)
{
	static const struct mappings_files files = { .arch = SHSTK_ARCH_ARM64, .add = add };
	struct mappings_map map = { .start = PROGRAM, .end = PROGRAM + SMALL_TABLE };
	struct mappings *mappings = mappings_create(&files);

	map.path = (char *)"/program";
	mappings_add(&mappings, 1, &map);
	map = (struct mappings_map){ .start = LIBRARY, .end = LIBRARY + SMALL_TABLE };
	map.path = (char *)"/library";
	mappings_add(&mappings, 1, &map);
	return mappings;
}

/* Unwinds a stack of main.leaf(), which keeps no frame, and main.work(). */
static int unwind(struct mappings *mappings, struct unwound *ret)
{
	static const uint64_t words[FRAME / 8] = { PC(GOEXIT) };
	struct shstk_regs regs = { .size = sizeof(regs), .known = UINT32_MAX, .pc = PC(LEAF) };
	const struct stack_copy copy = { .regs = &regs,
					 .bytes = (const uint8_t *)words,
					 .size = sizeof(words) };

	regs.r[30] = PC(WORK);
	regs.r[31] = STACK;
	return mappings_unwind(mappings, 1, &copy, ret);
}

TEST(modules_are_read_again_if_there_was_no_memory)
{
	uint64_t pcs[8], sps[8];
	uint8_t marks[8];
	struct unwound stack = { .pcs = pcs, .sps = sps, .marks = marks, .max = 8 };
	struct mappings *mappings = map_both();

	no_memory = true;
	EXPECT_EQ(unwind(mappings, &stack), -ENOMEM);
	no_memory = false;
	ASSERT_EQ(unwind(mappings, &stack), 0);
	EXPECT_EQ(stack.nr, 3);
	EXPECT_EQ(stack.end, SHSTK_END_COMPLETE);
	mappings_put(mappings);
}

TEST_HARNESS_MAIN
