// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * function.c - what a function of Ruby says: its label and its file.
 *
 * All of it was copied from the memory of a process, which may hold anything.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/language/ruby/ruby.h"

/*
 * Returns a text of which @size bytes were copied, malloc'ed, or NULL. It ends in "..." if there may be
 * more.
 */
static char *make_text(const uint8_t *bytes, size_t size)
{
	const char *more = size == LANGUAGE_SHORT - 1 ? "..." : "";
	char *ret;

	return asprintf(&ret, "%.*s%s", (int)size, (const char *)bytes, more) < 0 ? NULL : ret;
}

/* Returns the name of a function as it is shown, malloc'ed, or NULL. */
static char *make_name(const char *label, const char *file)
{
	const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
	char *ret;

	/* A label such as "<main>" says nothing without its file. */
	if (!strchr(label, '<') || !*base)
		return strdup(label);
	return asprintf(&ret, "%s (%s)", label, base) < 0 ? NULL : ret;
}

int ruby_function(const void *version, const struct language_code *code, size_t size,
		  struct language_function *ret)
{
	const struct ruby_version *v = version;
	char *label;

	*ret = (struct language_function){ .line = 0 };
	if (size < offsetof(struct language_code, table) || !code->got[RUBY_TEXT_LABEL] ||
	    code->got[RUBY_TEXT_LABEL] >= LANGUAGE_SHORT ||
	    code->got[RUBY_TEXT_PATH] >= LANGUAGE_SHORT)
		return -EINVAL;
	label = make_text(code->shorts[RUBY_TEXT_LABEL], code->got[RUBY_TEXT_LABEL]);
	ret->file = make_text(code->shorts[RUBY_TEXT_PATH], code->got[RUBY_TEXT_PATH]);
	if (label && ret->file)
		ret->name = make_name(label, ret->file);
	free(label);
	if (!ret->name)
		return -ENOMEM;
	/* One in C has no instructions: there it has its address. */
	if (!code->words[v->instructions])
		ret->address = code->words[v->first_line];
	else
		ret->line = (uint32_t)(code->words[v->first_line] >> !v->plain_line);
	return 0;
}

/* The line was found with the frame. */
unsigned int ruby_line(const struct language_function *f, int at)
{
	(void)f;
	return at < 0 ? 0 : at;
}
