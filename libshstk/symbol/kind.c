// SPDX-License-Identifier: LGPL-2.1-or-later
/* kind.c - tells what the code of a frame is, as kind.h describes. */
#include <string.h>

#include "kind.h"
#include "language.h"

const char *const shstk_kind_names[SHSTK_KINDS] = {
	[SHSTK_KIND_NOTE] = "note",	  [SHSTK_KIND_NATIVE] = "native",
	[SHSTK_KIND_INLINED] = "inlined", [SHSTK_KIND_KERNEL] = "kernel",
	[SHSTK_KIND_MADE] = "made",	  [SHSTK_KIND_PYTHON] = "python",
	[SHSTK_KIND_JAVA] = "java",	  [SHSTK_KIND_JAVASCRIPT] = "javascript",
	[SHSTK_KIND_GO] = "go",		  [SHSTK_KIND_UNKNOWN] = "unknown",
	[SHSTK_KIND_GUESSED] = "guessed",
};

/*
 * Returns whether a location is in the kernel, whose addresses have the top bit set on all
 * machines.
 */
static bool is_kernel(const struct shstk_location *location)
{
	return location->pc >> 63;
}

enum shstk_kind shstk_kind_of(const struct shstk_location *location,
			      const struct shstk_symbol *symbol, const struct shstk_symframe *frame)
{
	static const enum shstk_kind languages[SHSTK_LANGUAGES] = {
		[SHSTK_LANGUAGE_NATIVE] = SHSTK_KIND_NATIVE,
		[SHSTK_LANGUAGE_KERNEL] = SHSTK_KIND_KERNEL,
		[SHSTK_LANGUAGE_PYTHON] = SHSTK_KIND_PYTHON,
		[SHSTK_LANGUAGE_JAVA] = SHSTK_KIND_JAVA,
		[SHSTK_LANGUAGE_JAVASCRIPT] = SHSTK_KIND_JAVASCRIPT,
		[SHSTK_LANGUAGE_GO] = SHSTK_KIND_GO,
	};
	enum shstk_kind language = languages[shstk_language_of(location, frame)];

	if (location->guessed)
		return SHSTK_KIND_GUESSED;
	if (symbol->map->kind == SHSTK_SYMMAP_LANGUAGE && !strcmp(symbol->map->name, "[python]"))
		return SHSTK_KIND_PYTHON;
	if (!symbol->resolved)
		return SHSTK_KIND_UNKNOWN;
	if (language != SHSTK_KIND_NATIVE)
		return language;
	if (frame->inlined)
		return SHSTK_KIND_INLINED;
	if (symbol->map->kind == SHSTK_SYMMAP_ANON || symbol->map->kind == SHSTK_SYMMAP_NONE)
		return SHSTK_KIND_MADE;
	return SHSTK_KIND_NATIVE;
}

const char *shstk_module_of(const struct shstk_location *location)
{
	if (is_kernel(location))
		return "[kernel]";
	if (location->map->kind == SHSTK_SYMMAP_LANGUAGE)
		return location->map->name;
	return location->map->kind < SHSTK_SYMMAP_NONE ? location->map->name : "";
}
