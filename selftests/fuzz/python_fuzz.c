// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * python_fuzz.c - any bytes as what was copied of a function of Python, or of the name of a task: no
 * read leaves them, names are strings, and lines are found in bounded time. See function_fuzz.h.
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

/* The same bytes as the name of a task. */
static void name_task(const uint8_t *data, size_t size)
{
	char name[LANGUAGE_TASK];
	size_t length;

	if (!size)
		return;
	length = python_task(version(data[0]), data + 1, size - 1, name, sizeof(name));
	if (length > sizeof(name) || (length && name[length - 1]))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct function_fuzz python = { version, python_function, judge };

	function_fuzz(&python, data, size);
	name_task(data, size);
	return 0;
}
