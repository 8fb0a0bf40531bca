// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * debugdata_fuzz.c - ELF files with compressed and packed unwind information: what is taken out of
 * them is memory of its own, of bounded size.
 */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

#include "shstk.h"
#include "symbol/symbol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(struct shstk_section *s)
{
	unsigned long sum = 0;
	size_t i;

	if (s->data && !s->size)
		abort();
	for (i = 0; s->data && i < s->size; i += 64)
		sum += ((uint8_t *)s->data)[i];
	if (sum == ULONG_MAX) /* never so: it makes the compiler keep the reads */
		abort();
	free(s->data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct shstk_debug d = { .size = sizeof(d) };
	int err;

	if (!size)
		return 0;
	err = shstk_debug_find("/nonexistent", "/nonexistent/fuzz", data, size, &d);
	if (!err != (d.eh_frame.data || d.debug_frame.data))
		abort();
	use(&d.eh_frame);
	use(&d.debug_frame);
	return 0;
}
