// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * python_fuzz.c - any bytes as what was copied of a function of Python: no read leaves them, names
 * are strings, and lines are found in bounded time.
 *
 * The first byte of an input chooses the version, the next four an instruction.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/language/python/python.h"
#include "tools/language/python/versions.h"

#define HEAD 5

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct language_function f;
	const struct python_version *v;
	uint8_t *record;
	int at;

	if (size < HEAD + sizeof(uint64_t))
		return 0;
	v = python_version(11 + data[0] % 4);
	memcpy(&at, data + 1, sizeof(at));
	size -= HEAD;
	/* It has memory of its own size, so that the sanitizer sees a read behind it. */
	record = malloc(size);
	if (!v || !record)
		abort();
	memcpy(record, data + HEAD, size);
	if (!python_function(v, (const void *)record, size, &f)) {
		if (strlen(f.name) > 8 * LANGUAGE_SHORT || strlen(f.file) > 4 * LANGUAGE_SHORT)
			abort();
		for (int i = -2; i < 64; i += 2)
			python_line(&f, i);
		python_line(&f, at);
	}
	free(f.name);
	free(f.file);
	free(f.lines);
	free(record);
	return 0;
}
