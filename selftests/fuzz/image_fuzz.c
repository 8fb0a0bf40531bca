// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * image_fuzz.c - whole ELF images, as files and as memory: a trace through them
 * ends, whatever headers, notes, sections and code they have.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shstk.h"

#define BASE 0x10000000ull
#define STACK 0x7fff0000ull
#define DEPTH 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct stack {
	const uint8_t *data;
	size_t size;
};

/* Reads from a stack of words from the input, each taken as an offset into the image. */
static int read_stack(void *arg, uint64_t addr, void *buf, size_t len)
{
	const struct stack *s = arg;
	uint64_t word;

	if (addr < STACK || addr >= STACK + 4096 || len != 8)
		return -1;
	if (addr & 8)
		word = BASE + s->data[(addr - STACK) % s->size] * 16;
	else
		word = addr + 16;
	memcpy(buf, &word, 8);
	return 0;
}

static void unwind(struct shstk_space *space, const struct stack *stack)
{
	struct shstk_regs regs = {
		.size = sizeof(regs),
		.known = UINT32_MAX,
	};
	uint64_t pcs[DEPTH], at;
	unsigned int i;

	for (at = 0; at < 0x2000; at += 241) {
		for (i = 0; i < 32; i++)
			regs.r[i] = STACK + 16 * i;
		regs.pc = BASE + at;
		if (shstk_unwind(space, &regs, read_stack, (void *)stack, pcs, DEPTH, NULL, NULL) <
		    1)
			abort();
	}
}

static void check(const uint8_t *data, size_t size, int arch, int fd)
{
	const struct stack stack = { data, size };
	struct shstk_space *space;
	char path[32] = "/proc/self/fd/";

	if (shstk_space_create(arch, &space))
		abort();
	if (fd >= 0) {
		path[14] = '0' + fd / 10;
		path[15] = '0' + fd % 10;
		if (!shstk_space_add_file(space, path, BASE, BASE + 0x10000, 0))
			unwind(space, &stack);
	} else if (!shstk_space_add_image(space, data, size, BASE)) {
		unwind(space, &stack);
	}
	shstk_space_destroy(space);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd;

	if (size < 64)
		return 0;
	fd = memfd_create("image", MFD_CLOEXEC);
	if (fd < 0 || fd > 99 || write(fd, data, size) != (ssize_t)size)
		abort();
	check(data, size, SHSTK_ARCH_X86, fd);
	check(data, size, SHSTK_ARCH_ARM64, -1);
	check(data, size, SHSTK_ARCH_X86, -1);
	close(fd);
	return 0;
}
