// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * remote_fuzz.c - images in the memory of processes, of which files are made: whatever they say,
 * the file is bounded, and nothing outside of the image is read.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbol/budget.h"
#include "symbol/remote_file.h"

#define BASE 0x10000000ull
#define MOST (1ull << 33) /* bytes of a file, including holes */
#define MEMORY (256ull << 20) /* bytes of memory that a file may take */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *data;
	size_t size;
};

static bool read_input(void *arg, uint64_t addr, void *buf, size_t size)
{
	const struct input *in = arg;

	if (addr < BASE || addr - BASE > in->size || size > in->size - (addr - BASE))
		return false;
	memcpy(buf, in->data + (addr - BASE), size);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	struct shstk_budget budget;
	struct shstk_account account;
	uint64_t left = MEMORY;
	const struct shstk_remote_memory memory = { read_input, &in, &account, &left };
	struct stat st;
	int fd;

	shstk_budget_init(&budget, 4 * MEMORY, 0);
	shstk_account_open(&account, &budget, "memory");
	shstk_account_begin(&account);
	fd = shstk_remote_image(&memory, BASE);
	shstk_account_end(&account);
	if (account.memory != MEMORY - left)
		abort();
	shstk_account_close(&account);
	if (fd < 0)
		return 0;
	if (fstat(fd, &st) || st.st_size <= 0 || (uint64_t)st.st_size > MOST)
		abort();
	close(fd);
	return 0;
}
