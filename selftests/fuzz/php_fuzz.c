// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * php_fuzz.c - any bytes as what was copied of a function of PHP: no read leaves them, and names are
 * strings.
 *
 * The first byte of an input chooses the version, the next four an instruction.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/language/php/php.h"

#define HEAD 5

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t apis[] = { 20220829, 20240924 };
	struct language_function f;
	const struct php_version *v;
	uint8_t *record;
	int at;

	if (size < HEAD + sizeof(uint64_t))
		return 0;
	v = php_version(apis[data[0] % 2]);
	memcpy(&at, data + 1, sizeof(at));
	size -= HEAD;
	/* It has memory of its own size, so that the sanitizer sees a read behind it. */
	record = malloc(size);
	if (!v || !record)
		abort();
	memcpy(record, data + HEAD, size);
	if (!php_function(v, (const void *)record, size, &f)) {
		if (strlen(f.name) > LANGUAGE_LONG + 3 * LANGUAGE_SHORT ||
		    strlen(f.file) > 2 * LANGUAGE_SHORT)
			abort();
		php_line(&f, at);
	}
	free(f.name);
	free(f.file);
	free(record);
	return 0;
}
