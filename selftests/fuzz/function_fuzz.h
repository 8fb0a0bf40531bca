/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * function_fuzz.h - any bytes as what was copied of a function of a language.
 *
 * The first byte of an input chooses the version, the next four an instruction; the rest is the
 * record.
 */
#ifndef SELFTESTS_FUZZ_FUNCTION_FUZZ_H
#define SELFTESTS_FUZZ_FUNCTION_FUZZ_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/language/language.h"

#define HEAD 5

/**
 * struct function_fuzz - a language
 * @version: returns the version that a byte chooses.
 * @function: see &struct language.
 * @judge: looks at a function, and at what it executes: an offset or a line.
 */
struct function_fuzz {
	const void *(*version)(uint8_t chosen);
	int (*function)(const void *version, const struct language_code *code, size_t size,
			struct language_function *ret);
	void (*judge)(const struct language_function *f, int at);
};

static inline void function_fuzz(const struct function_fuzz *fuzz, const uint8_t *data, size_t size)
{
	struct language_function f;
	const void *v;
	uint8_t *record;
	int at;

	if (size < HEAD + sizeof(uint64_t))
		return;
	v = fuzz->version(data[0]);
	memcpy(&at, data + 1, sizeof(at));
	size -= HEAD;
	/* It has memory of its own size, so that the sanitizer sees a read behind it. */
	record = malloc(size);
	if (!v || !record)
		abort();
	memcpy(record, data + HEAD, size);
	if (!fuzz->function(v, (const void *)record, size, &f))
		fuzz->judge(&f, at);
	free(f.name);
	free(f.file);
	free(f.lines);
	free(f.own);
	free(record);
}

#endif
