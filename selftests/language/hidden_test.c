// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hidden_test.c - what libruby does not export is found by the very code of functions that it exports, or
 * not at all (tools/language/ruby/hidden.c). The memory of the process is this test's own.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "libshstk/shstk.h"
#include "libshstk/symbol/budget.h"
#include "libshstk/symbol/symbol.h"
#include "tools/language/ruby/hidden.h"

#include "kselftest_harness.h"

#define MEMORY 0x1000 /* its address */
#define MEMORY_BYTES 0x800
#define FUNCTION 64 /* bytes from one function to the next */
#define INDEX 0x400 /* offset of what __tls_get_addr() gets */
#define MACHINE 0x600 /* offset of the variable with the virtual machine */
#define ERRINFO 0x78
#define THREAD 0x30
#define MODULE 3
#define OFFSET 0x10
#define CONTEXT_BYTES 27 /* of code that reads a member of the context, and are looked at */
#define MACHINE_BYTES 14

#include "selftests/language/own_memory.h"

/* Writes the distance from behind @at to @to. */
static void put_distance(uint8_t *at, size_t to)
{
	const int32_t distance = (int32_t)to - (int32_t)(at + 4 - memory);

	memcpy(at, &distance, sizeof(distance));
}

/* As Debian 13's rb_errinfo() and rb_thread_current() begin. */
static void put_context(size_t at, uint8_t member)
{
	static const uint8_t code[] = {
		0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 0x08, 0x66, 0x48,
		0x8d, 0x3d, 0,	  0,	0,    0,    0x66, 0x66, 0x48, 0xe8,
		0,    0,    0,	  0,	0x48, 0x8b, 0x00, 0x48, 0x8b, 0x40,
	};

	memcpy(memory + at, code, sizeof(code));
	put_distance(memory + at + 12, INDEX);
	memory[at + sizeof(code)] = member;
}

/* As rb_gc_count() and rb_during_gc() begin. */
static void put_machine(size_t at)
{
	static const uint8_t code[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8d, 0x05,
					0,    0,    0,	  0,	0x48, 0x8b, 0x00 };

	memcpy(memory + at, code, sizeof(code));
	put_distance(memory + at + 7, MACHINE);
}

/* Makes the library. Returns what is known of its functions. */
static struct ruby_hidden make(void)
{
	const uint64_t index[] = { MODULE, OFFSET };
	struct ruby_hidden h = { .errinfo = ERRINFO, .thread = THREAD };

	memset(memory, 0, sizeof(memory));
	for (int i = 0; i < RUBY_HIDDEN; i++)
		h.values[i] = MEMORY + i * FUNCTION;
	put_context(RUBY_ERRINFO * FUNCTION, ERRINFO);
	put_context(RUBY_THREAD_CURRENT * FUNCTION, THREAD);
	put_machine(RUBY_GC_COUNT * FUNCTION);
	put_machine(RUBY_DURING_GC * FUNCTION);
	memcpy(memory + INDEX, index, sizeof(index));
	return h;
}

static int find(const struct ruby_hidden *h)
{
	struct context_variable context;
	uint64_t machine;

	return ruby_hidden_find(&module, h, &context, &machine);
}

TEST(the_context_and_the_machine_are_where_the_code_says)
{
	const struct ruby_hidden h = make();
	struct context_variable context;
	uint64_t machine;

	ASSERT_EQ(0, ruby_hidden_find(&module, &h, &context, &machine));
	EXPECT_EQ(MEMORY + MACHINE, machine);
	EXPECT_EQ(MODULE, context.module);
	EXPECT_EQ(OFFSET, context.offset);
}

TEST(code_without_a_mark_for_branches_says_the_same)
{
	const struct ruby_hidden h = make();

	for (int i = 0; i < RUBY_HIDDEN; i++)
		memmove(memory + i * FUNCTION, memory + i * FUNCTION + 4, FUNCTION - 4);
	put_distance(memory + RUBY_ERRINFO * FUNCTION + 8, INDEX);
	put_distance(memory + RUBY_THREAD_CURRENT * FUNCTION + 8, INDEX);
	put_distance(memory + RUBY_GC_COUNT * FUNCTION + 3, MACHINE);
	put_distance(memory + RUBY_DURING_GC * FUNCTION + 3, MACHINE);
	EXPECT_EQ(0, find(&h));
}

TEST(other_code_says_nothing)
{
	for (int i = 0; i < RUBY_HIDDEN; i++) {
		const bool context = i == RUBY_ERRINFO || i == RUBY_THREAD_CURRENT;
		const int nr = context ? CONTEXT_BYTES : MACHINE_BYTES - 4;

		for (int k = 4; k < 4 + nr; k++) {
			const struct ruby_hidden h = make();

			/* Where the call goes to is not looked at. */
			if (context && k >= 20 && k < 24)
				continue;
			memory[i * FUNCTION + k] ^= 0x10;
			EXPECT_EQ(-ENOENT, find(&h))
			{
				TH_LOG("function %d, byte %d", i, k);
			}
		}
	}
}

TEST(a_function_that_is_missing_says_nothing)
{
	for (int i = 0; i < RUBY_HIDDEN; i++) {
		struct ruby_hidden h = make();

		h.values[i] = 0;
		EXPECT_EQ(-ENOENT, find(&h));
		h.values[i] = MEMORY + sizeof(memory) - 8;
		EXPECT_EQ(-ENOENT, find(&h));
	}
}

TEST(a_module_has_a_number_once_it_is_loaded)
{
	const struct ruby_hidden h = make();

	memset(memory + INDEX, 0, 8);
	EXPECT_EQ(-EAGAIN, find(&h));
	memset(memory + INDEX, 0xff, 8);
	EXPECT_EQ(-ENOENT, find(&h));
}

TEST(a_function_is_found_by_each_of_its_addresses)
{
	const uint64_t of = (uintptr_t)read_memory;
	struct shstk_symbols *symbols = NULL;
	struct language_module self = { .read = read_memory };
	uint64_t start = 0, end = 0, other_start, other_end;

	ASSERT_EQ(0, shstk_symbols_create(NULL, &symbols));
	self.account = shstk_symbols_process_account(symbols, getpid());
	self.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, self.fd);
	/* The program is linked for fixed addresses. */
	ASSERT_EQ(0, ruby_hidden_run(&self, 0, of, &start, &end));
	EXPECT_EQ(of, start);
	EXPECT_LT(of, end);
	ASSERT_EQ(0, ruby_hidden_run(&self, 0, end - 1, &other_start, &other_end));
	EXPECT_EQ(start, other_start);
	EXPECT_EQ(end, other_end);
	EXPECT_EQ(-ENOENT, ruby_hidden_run(&self, 0, 1, &start, &end));
	close(self.fd);
	shstk_symbols_destroy(symbols);
}

TEST_HARNESS_MAIN
