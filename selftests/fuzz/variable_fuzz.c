// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * variable_fuzz.c - any ELF file as one that may have the thread-local variable of OTEP 4947, and any
 * bytes as the memory of the process that has mapped it. Finding it ends, and takes no more memory
 * than the account has.
 *
 * The last eight bytes of an input are the words of that memory.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libshstk/symbol/budget.h"
#include "tools/convert/context_variable.h"
#include "tools/language/language.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Memory of the process: the same word everywhere, but not at odd addresses. */
static int read_memory(void *arg, uint64_t addr, void *buf, size_t size)
{
	if (addr & 1)
		return -1;
	for (size_t i = 0; i < size; i++)
		((uint8_t *)buf)[i] = ((const uint8_t *)arg)[i % 8];
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct shstk_symbols *symbols;
	struct context_variable found;
	struct language_module module = { .start = 0x1000, .read = read_memory };
	uint8_t word[8];

	if (size < sizeof(word))
		return 0;
	size -= sizeof(word);
	memcpy(word, data + size, sizeof(word));
	module.arg = word;
	module.offset = word[7] << 12;
	module.fd = memfd_create("file", 0);
	if (module.fd < 0 || write(module.fd, data, size) != (ssize_t)size ||
	    shstk_symbols_create(NULL, &symbols))
		abort();
	module.account = shstk_symbols_account(symbols, "file");
	if (!module.account)
		abort();
	if (!context_variable_find(&module, CONTEXT_VARIABLE, &found) && found.module > 1u << 20)
		abort();
	shstk_symbols_destroy(symbols);
	close(module.fd);
	return 0;
}
