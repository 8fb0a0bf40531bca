// SPDX-License-Identifier: GPL-2.0-or-later
/* cfi_test.c - what of .eh_frame is accepted: a file may be made so that reading it takes long. */
#include <stdint.h>
#include <string.h>

#include "cfi.h"

#include "kselftest_harness.h"

#define ADDRESS 0x1000 /* of the function */
#define SIZE 16 /* its size */

static uint8_t bytes[CFI_MAX_PROGRAM];
static size_t size;
static uint8_t ra = 16; /* the register of the return address: x86-64's */

static void put(const void *from, size_t nr)
{
	memcpy(bytes + size, from, nr);
	size += nr;
}

/* The program of the function itself. */
static const uint8_t *own;
static size_t own_size;

/* Begins an entry, with room for its length. Returns its offset. */
static size_t begin(uint32_t id)
{
	const size_t at = size;

	put(&(uint32_t){ 0 }, 4);
	put(&id, 4);
	return at;
}

static void end(size_t at)
{
	const uint32_t length = size - at - 4;

	memcpy(bytes + at, &length, sizeof(length));
}

/* Makes a CIE with so many more letters, and a program of so many bytes, and a function that has it. */
static struct cfi_section make(size_t letters, size_t program)
{
	size_t at;

	memset(bytes, 0, sizeof(bytes));
	size = 0;
	at = begin(0);
	put("\x01z", 2);
	memset(bytes + size, 'S', letters);
	size += letters;
	put("\0\x01\x78", 3); /* no letter, factors */
	put(&ra, 1);
	size++; /* no data */
	size += program;
	end(at);
	at = begin(size + 4);
	put(&(uint64_t){ ADDRESS }, 8);
	put(&(uint64_t){ SIZE }, 8);
	size++; /* no data */
	put(own, own_size);
	end(at);
	return (struct cfi_section){ .s = { bytes, size, 0 } };
}

/* Returns whether the function is found. */
static bool is_found(const struct cfi_section *sec)
{
	struct fde fde;
	size_t next;

	return !cfi_entry(sec, 0, &fde, &next) && cfi_entry(sec, next, &fde, &next) == 1 &&
	       fde.start == ADDRESS && fde.end == ADDRESS + SIZE;
}

TEST(a_function_is_found_that_has_a_cie)
{
	struct cfi_section sec = make(1, 0);
	struct fde fde;
	size_t next;

	EXPECT_TRUE(is_found(&sec));
	sec = make(1, CFI_MAX_CIE_PROGRAM);
	ASSERT_TRUE(is_found(&sec));
	ASSERT_EQ(0, cfi_entry(&sec, 0, &fde, &next));
	ASSERT_EQ(1, cfi_entry(&sec, next, &fde, &next));
	/* All of the program is its. */
	EXPECT_EQ(CFI_MAX_CIE_PROGRAM, fde.cie.end - fde.cie.insn);
}

TEST(a_cie_that_is_long_in_front_of_its_program_is_none)
{
	struct cfi_section sec = make(CFI_MAX_CIE / 2, 0);

	EXPECT_TRUE(is_found(&sec));
	sec = make(CFI_MAX_CIE, 0);
	EXPECT_FALSE(is_found(&sec));
}

TEST(a_cie_whose_program_is_long_is_none)
{
	struct cfi_section sec = make(1, CFI_MAX_CIE_PROGRAM + 1);

	EXPECT_FALSE(is_found(&sec));
}

/*
 * Finds the row of a function whose CFA is first 8 bytes above the stack pointer (register 7 or, on arm64, 31), and
 * then as the @nr bytes of @program say. Returns what cfi_row_at() does.
 */
static int row_of(const uint8_t *program, size_t nr, struct cfi_row *row)
{
	const uint8_t first[] = { 0x0c, ra == 30 ? 31 : 7, 8 };
	struct cfi_section sec = make(0, sizeof(first) + nr);
	struct fde fde;
	uint8_t *to;
	size_t next;

	if (cfi_entry(&sec, 0, &fde, &next) || cfi_entry(&sec, next, &fde, &next) != 1)
		return -1;
	to = bytes + (fde.cie.insn - bytes);
	memcpy(to, first, sizeof(first));
	memcpy(to + sizeof(first), program, nr);
	return cfi_row_at(&sec, fde.cie.end - bytes, ADDRESS, row);
}

/* So is caml_c_call_stack_args() of OCaml 5 described, which pushes arguments. */
TEST(an_offset_leaves_an_expression_that_counts_from_another_register)
{
	/* load(register 3 + 8) + 8; load(register 3 + 8); and offsets of 16 and -16 bytes */
	static const uint8_t program[][9] = {
		{ 0x0f, 5, 0x73, 8, 0x06, 0x23, 8, 0x0e, 16 },
		{ 0x0f, 5, 0x73, 8, 0x06, 0x23, 8, 0x13, 2 },
		{ 0, 0, 0x0f, 3, 0x73, 8, 0x06, 0x0e, 16 },
	};
	struct cfi_row row;

	for (size_t i = 0; i < sizeof(program) / sizeof(*program); i++) {
		ASSERT_EQ(0, row_of(program[i], sizeof(*program), &row));
		EXPECT_TRUE(row.cfa_expr);
		EXPECT_EQ(3, cfi_loads_by(&(struct cfi_section){ .s = { bytes, size, 0 } },
					  row.cfa_off));
	}
}

TEST(an_offset_after_any_other_expression_is_refused)
{
	/* load(register 7 + 8) + 8; register 3 + 8 + 8; load(load(register 3 + 8)) */
	static const uint8_t program[][9] = {
		{ 0x0f, 5, 0x77, 8, 0x06, 0x23, 8, 0x0e, 16 },
		{ 0, 0x0f, 4, 0x73, 8, 0x23, 8, 0x0e, 16 },
		{ 0, 0x0f, 4, 0x73, 8, 0x06, 0x06, 0x0e, 16 },
	};
	struct cfi_row row;

	for (size_t i = 0; i < sizeof(program) / sizeof(*program); i++) {
		/* Without the offset it is one that is accepted. */
		EXPECT_EQ(0, row_of(program[i], sizeof(*program) - 2, &row));
		EXPECT_NE(0, row_of(program[i], sizeof(*program), &row));
	}
}

/* A program could have it read thousands of times, once for each offset. */
TEST(an_offset_after_an_expression_with_a_padded_number_is_refused)
{
	/* load(register 3 + 8), the 8 in 37 bytes */
	uint8_t program[43] = { 0x0f, 39, 0x73, 0x88 };
	struct cfi_row row;

	memset(program + 4, 0x80, 35);
	memcpy(program + 39, (const uint8_t[]){ 0, 0x06, 0x0e, 16 }, 4);
	EXPECT_EQ(0, row_of(program, sizeof(program) - 2, &row));
	EXPECT_NE(0, row_of(program, sizeof(program), &row));
}

/* So are the functions of OCaml's runtime for arm64 described, where they begin and end. */
TEST(registers_below_the_stack_pointer_of_arm64_are_not_saved)
{
	/* x29 and x30 are 16 and 8 bytes below the CFA, and that is 0 or 16 bytes above the stack pointer. */
	static const uint8_t program[][6] = {
		{ 0x9d, 2, 0x9e, 1, 0x0e, 0 },
		{ 0x9d, 2, 0x9e, 1, 0x0e, 16 },
		{ 0x9d, 2, 0x9e, 1, 0x0e, 8 },
	};
	const int fp[] = { REG_SAME, REG_AT_CFA, REG_SAME };
	const int lr[] = { REG_SAME, REG_AT_CFA, REG_AT_CFA };
	struct cfi_row row;

	ra = 30;
	for (size_t i = 0; i < sizeof(program) / sizeof(*program); i++) {
		ASSERT_EQ(0, row_of(program[i], sizeof(*program), &row));
		EXPECT_EQ(fp[i], row.type[29]);
		EXPECT_EQ(lr[i], row.type[30]);
	}
	ra = 16;
	/* Other machines may keep something there. */
	ASSERT_EQ(0, row_of(program[0], sizeof(*program), &row));
	EXPECT_EQ(REG_AT_CFA, row.type[29]);
}

static int count_row(void *arg, uint64_t start, const struct cfi_row *row)
{
	unsigned int *rows = arg;

	(void)row;
	return start != ADDRESS + 4 * (*rows)++;
}

/* Returns how many rows a function has. Sets from where on its program is corrupt; 0: it is not. */
static unsigned int rows_of(const uint8_t *program, size_t nr, uint64_t *bad)
{
	struct cfi_section sec;
	unsigned int rows = 0;
	struct fde fde;
	struct cfi_run run = { .sec = &sec, .fde = &fde, .limit = ADDRESS + SIZE, .bad = bad };
	size_t next;

	own = program;
	own_size = nr;
	sec = make(0, 0);
	own_size = 0;
	run.row = count_row;
	run.arg = &rows;
	if (cfi_entry(&sec, 0, &fde, &next) || cfi_entry(&sec, next, &fde, &next) != 1)
		return 0;
	if (!cfi_run(&run))
		*bad = 0;
	return rows;
}

TEST(rows_in_front_of_what_is_corrupt_are_given)
{
	/* An offset after each four bytes, and a state that is restored though none was remembered. */
	static const uint8_t program[] = { 0x0c, 7, 8, 0x44, 0x0e, 16, 0x44, 0x0e, 8, 0x0b };
	uint64_t bad = 1;

	EXPECT_EQ(3, rows_of(program, sizeof(program) - 1, &bad));
	EXPECT_EQ(0, bad);
	EXPECT_EQ(2, rows_of(program, sizeof(program), &bad));
	EXPECT_EQ(ADDRESS + 8, bad);
}

TEST_HARNESS_MAIN
