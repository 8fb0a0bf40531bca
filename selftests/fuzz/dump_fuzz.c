// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * dump_fuzz.c - offline unwinding: registers and a piece of stack that may hold anything, with
 * files that are in order. The trace ends, in bounded time, is the same when it is repeated, and
 * marks every guess.
 *
 * Input: flags (1: arm64, 2: the mapping is of unknown code), 4 bytes that say which registers are
 * known, the program counter, 32 registers, the stack. A word whose highest byte is CODE is an
 * address in the file, and one with STACK an address on the stack, so that mutations make chains of
 * frames.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shstk.h"

#define MAX 64
#define MAX_WORDS 4096
#define CODE 0xcc
#define STACK 0x5a
#define START 0x7f0000400000ull
#define STACK_AT 0x7ffd00001000ull

/* Some reads per frame, and as many for what the guesses look at. */
#define MAX_READS (MAX * 256)

struct dump {
	uint64_t words[MAX_WORDS];
	size_t size;
	unsigned int reads;
};

struct trace {
	uint64_t pcs[MAX];
	uint8_t marks[MAX];
	int nr;
	struct shstk_info info;
};

static const char *const files[] = { DUMP_X86, DUMP_ARM64 };

/* For each machine: the file, and as much unknown code without a file. */
static struct shstk_space *spaces[2][2];

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	for (int i = 0; i < 2; i++) {
		int fd = open(files[i], O_RDONLY);
		struct stat st;
		void *image;

		if (fd < 0 || fstat(fd, &st)) {
			perror(files[i]);
			abort();
		}
		image = malloc((size_t)st.st_size);
		if (!image || read(fd, image, (size_t)st.st_size) != st.st_size)
			abort();
		close(fd);
		if (shstk_space_create(i ? SHSTK_ARCH_ARM64 : SHSTK_ARCH_X86, &spaces[i][0]) ||
		    shstk_space_create(i ? SHSTK_ARCH_ARM64 : SHSTK_ARCH_X86, &spaces[i][1]) ||
		    shstk_space_add_image(spaces[i][0], image, (size_t)st.st_size, START) ||
		    shstk_space_add_code(spaces[i][1], START, START + 65536))
			abort();
		free(image);
	}
	return 0;
}

static int read_stack(void *arg, uint64_t addr, void *buf, size_t len)
{
	struct dump *d = arg;

	if (++d->reads > MAX_READS || len > 64)
		abort();
	if (addr < STACK_AT || addr - STACK_AT > d->size || len > d->size - (addr - STACK_AT))
		return -1;
	memcpy(buf, (uint8_t *)d->words + (addr - STACK_AT), len);
	return 0;
}

static void unwind(struct shstk_space *space, struct dump *d, const struct shstk_regs *regs,
		   struct trace *t)
{
	struct shstk_opts opts = { .size = sizeof(opts), .marks = t->marks };

	memset(t, 0, sizeof(*t));
	t->info.size = sizeof(t->info);
	d->reads = 0;
	t->nr = shstk_unwind(space, regs, read_stack, d, t->pcs, MAX, &opts, &t->info);
}

static uint64_t word_of(uint64_t raw)
{
	switch (raw >> 56) {
	case CODE:
		return START + (raw & 0xffff);
	case STACK:
		return STACK_AT + (raw & 0x7fff);
	default:
		return raw;
	}
}

static uint64_t take(const uint8_t **data)
{
	uint64_t raw;

	memcpy(&raw, *data, sizeof(raw));
	*data += sizeof(raw);
	return word_of(raw);
}

static void check(const struct shstk_regs *regs, const struct trace *t)
{
	unsigned int guessed = 0;

	if (t->nr < 1 || t->nr > MAX || t->info.end > SHSTK_END_BOUNDS || t->pcs[0] != regs->pc)
		abort();
	for (int i = 0; i < t->nr; i++)
		guessed += !!(t->marks[i] & SHSTK_MARK_GUESS);
	if (guessed != t->info.guessed)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct dump d;
	static struct trace first, again;
	struct shstk_regs regs = { .size = sizeof(regs) };
	struct shstk_space *space;
	bool arm64;

	if (size < 5 + 33 * 8)
		return 0;
	arm64 = data[0] & 1;
	space = spaces[arm64][data[0] >> 1 & 1];
	memcpy(&regs.known, data + 1, 4);
	/* The stack pointer is always known. */
	regs.known |= arm64 ? 1u << 31 : 1u << 7;
	data += 5;
	size -= 5 + 33 * 8;
	regs.pc = take(&data);
	for (int i = 0; i < 32; i++)
		regs.r[i] = take(&data);
	if (arm64)
		regs.pac_mask = regs.r[30] & 0x7f000000000000ull;
	d.size = size / 8 > MAX_WORDS ? MAX_WORDS * 8 : size / 8 * 8;
	for (size_t i = 0; i < d.size / 8; i++)
		d.words[i] = take(&data);
	unwind(space, &d, &regs, &first);
	if (first.nr < 0)
		return 0;
	check(&regs, &first);
	unwind(space, &d, &regs, &again);
	if (memcmp(&first, &again, sizeof(first)))
		abort();
	return 0;
}
