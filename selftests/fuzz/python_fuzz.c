// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * python_fuzz.c - any bytes as what was copied of a function of Python: no read leaves them, names
 * are strings, and lines are found in bounded time. See function_fuzz.h.
 */
#include "selftests/fuzz/function_fuzz.h"
#include "tools/language/python/python.h"
#include "tools/language/python/versions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const void *version(uint8_t chosen)
{
	return python_version(11 + chosen % 4);
}

static void judge(const struct language_function *f, int at)
{
	if (strlen(f->name) > 8 * LANGUAGE_SHORT || strlen(f->file) > 4 * LANGUAGE_SHORT)
		abort();
	for (int i = -2; i < 64; i += 2)
		python_line(f, i);
	python_line(f, at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct function_fuzz python = { version, python_function, judge };

	function_fuzz(&python, data, size);
	return 0;
}
