// SPDX-License-Identifier: LGPL-2.1-or-later
/* language.c - tells languages by names, as language.h describes. */
#include <string.h>

#include "language.h"

static const struct {
	const char *name, *frame_type;
} names[SHSTK_LANGUAGES] = {
	[SHSTK_LANGUAGE_NATIVE] = { "native", "native" },
	[SHSTK_LANGUAGE_KERNEL] = { "kernel", "kernel" },
	[SHSTK_LANGUAGE_PYTHON] = { "python", "cpython" },
	[SHSTK_LANGUAGE_JAVA] = { "java", "jvm" },
	[SHSTK_LANGUAGE_JAVASCRIPT] = { "javascript", "v8js" },
	[SHSTK_LANGUAGE_GO] = { "go", "go" },
};

static bool ends_in(const char *text, const char *end)
{
	size_t len = text ? strlen(text) : 0, n = strlen(end);

	return len > n && !strcmp(text + len - n, end);
}

static bool begins_with(const char *text, const char *begin)
{
	return !strncmp(text, begin, strlen(begin));
}

enum shstk_language shstk_language_of(const struct shstk_location *location,
				      const struct shstk_symframe *frame)
{
	/* Addresses of the kernel have the top bit set on all machines. */
	if (location->pc >> 63)
		return SHSTK_LANGUAGE_KERNEL;
	if (location->map->kind == SHSTK_SYMMAP_LANGUAGE &&
	    !strcmp(location->map->name, "[python]"))
		return SHSTK_LANGUAGE_PYTHON;
	if (begins_with(frame->function, "py::") || ends_in(frame->file, ".py"))
		return SHSTK_LANGUAGE_PYTHON;
	if (begins_with(frame->function, "JS:") || begins_with(frame->function, "LazyCompile:") ||
	    ends_in(frame->file, ".js"))
		return SHSTK_LANGUAGE_JAVASCRIPT;
	if (ends_in(frame->file, ".java") || strstr(frame->function, ";::"))
		return SHSTK_LANGUAGE_JAVA;
	return ends_in(frame->file, ".go") ? SHSTK_LANGUAGE_GO : SHSTK_LANGUAGE_NATIVE;
}

const char *shstk_language_name(enum shstk_language language)
{
	return names[language].name;
}

const char *shstk_language_frame_type(enum shstk_language language)
{
	return names[language].frame_type;
}
