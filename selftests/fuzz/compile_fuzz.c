// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * compile_fuzz.c - any file as one of which a table of unwind rules is made: making it ends, is the same when it is
 * repeated, and the module takes what comes of it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kmod/rules_check.h"
#include "tools/rules/compile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The module refuses a table that is not as it should be. What is said of code is of a part of it. */
static void judge(const struct compiled_table *t)
{
	struct ushstk_rules_view view;

	if (ushstk_rules_check(t->header, t->size, EM_X86_64, &view) &&
	    ushstk_rules_check(t->header, t->size, EM_AARCH64, &view))
		abort();
	if (t->described > t->code || t->cut > t->described)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct compiled_table first, again;
	/* Bytes of its own, so that the address sanitizer sees a read of one byte behind them. */
	uint8_t *image = malloc(size ? size : 1);
	int err;

	if (!image)
		abort();
	memcpy(image, data, size);
	err = rules_compile(image, size, NULL, &first);
	if (!err)
		judge(&first);
	if (rules_compile(image, size, NULL, &again) != err)
		abort();
	if (!err && (first.size != again.size || memcmp(first.header, again.header, first.size)))
		abort();
	if (!err) {
		free(first.header);
		free(again.header);
	}
	free(image);
	return 0;
}
