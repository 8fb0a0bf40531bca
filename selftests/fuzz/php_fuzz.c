// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * php_fuzz.c - any bytes as what was copied of a function of PHP: no read leaves them, and names are
 * strings. See function_fuzz.h.
 */
#include "selftests/fuzz/function_fuzz.h"
#include "tools/language/php/php.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const void *version(uint8_t chosen)
{
	static const uint32_t apis[] = { 20220829, 20240924 };

	return php_version(apis[chosen % 2]);
}

static void judge(const struct language_function *f, int at)
{
	if (strlen(f->name) > LANGUAGE_LONG + 3 * LANGUAGE_SHORT ||
	    strlen(f->file) > 2 * LANGUAGE_SHORT)
		abort();
	php_line(f, at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct function_fuzz php = { version, php_function, judge };

	function_fuzz(&php, data, size);
	return 0;
}
