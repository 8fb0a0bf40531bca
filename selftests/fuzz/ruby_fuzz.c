// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ruby_fuzz.c - any bytes as what was copied of a function of Ruby: no read leaves them, and names are
 * strings. See function_fuzz.h.
 */
#include "selftests/fuzz/function_fuzz.h"
#include "tools/language/ruby/ruby.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const void *version(uint8_t chosen)
{
	(void)chosen;
	return ruby_version("3.1.2");
}

static void judge(const struct language_function *f, int at)
{
	if (strlen(f->name) > 3 * LANGUAGE_SHORT || strlen(f->file) > 2 * LANGUAGE_SHORT)
		abort();
	ruby_line(f, at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct function_fuzz ruby = { version, ruby_function, judge };

	function_fuzz(&ruby, data, size);
	return 0;
}
