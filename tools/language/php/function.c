// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * function.c - what a function of PHP says: class, name and file.
 *
 * All of it was copied from the memory of a process, which may hold anything.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshstk/unaligned.h"
#include "tools/language/php/php.h"

#define MAIN "{main}"
#define INTERNAL 1 /* the function is part of the interpreter (ZEND_INTERNAL_FUNCTION) */

/*
 * Returns the text of a string of which @size bytes were copied, malloc'ed. It ends in "..." if it
 * was not copied whole, and is empty if there is no string. NULL: there is no memory.
 */
static char *make_text(const uint8_t *string, size_t size)
{
	size_t length, most;
	char *text;

	if (size < PHP_STRING_TEXT)
		return strdup("");
	length = get64(string + PHP_STRING_LENGTH);
	most = size - PHP_STRING_TEXT;
	text = malloc((most < length ? most : length) + sizeof("..."));
	if (!text)
		return NULL;
	memcpy(text, string + PHP_STRING_TEXT, most < length ? most : length);
	if (most < length)
		memcpy(text + most, "...", sizeof("..."));
	else
		text[length] = '\0';
	return text;
}

/* Returns the name of a function as it is shown, malloc'ed, or NULL. */
static char *make_name(const char *class, const char *name, const char *file)
{
	const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
	char *ret;
	int n;

	if (!*name)
		name = MAIN;
	/* A name such as "{closure}" says nothing without its file. */
	if (*name == '{' && *base)
		n = asprintf(&ret, "%s%s%s (%s)", class, *class ? "::" : "", name, base);
	else
		n = asprintf(&ret, "%s%s%s", class, *class ? "::" : "", name);
	return n < 0 ? NULL : ret;
}

/* Returns whether all texts were copied by as much as they have room, and are in the record. */
static bool fits(const struct language_code *code, size_t size)
{
	return size >= offsetof(struct language_code, table) &&
	       code->got[PHP_TEXT_NAME] < LANGUAGE_SHORT &&
	       code->got[PHP_TEXT_FILE] < LANGUAGE_SHORT &&
	       code->got[PHP_TEXT_CLASS] <= size - offsetof(struct language_code, table);
}

int php_function(const void *version, const struct language_code *code, size_t size,
		 struct language_function *ret)
{
	const struct php_version *v = version;
	const uint8_t *object = (const uint8_t *)code->words;
	char *class, *name;

	*ret = (struct language_function){ .line = 0 };
	if (!fits(code, size))
		return -EINVAL;
	ret->native = *object == INTERNAL;
	/* The frame at which a fiber begins has a function without a name and without code. */
	ret->begins_stack = ret->native && !get64(object + PHP_FUNCTION_NAME) &&
			    !get64(object + v->code);
	class = make_text(code->table, code->got[PHP_TEXT_CLASS]);
	name = make_text(code->shorts[PHP_TEXT_NAME], code->got[PHP_TEXT_NAME]);
	/* A function of the interpreter has no file; there is another member at that place. */
	ret->file =
		make_text(code->shorts[PHP_TEXT_FILE], ret->native ? 0 : code->got[PHP_TEXT_FILE]);
	if (class && name && ret->file)
		ret->name = make_name(class, name, ret->file);
	free(class);
	free(name);
	if (!ret->name)
		return -ENOMEM;
	if (!ret->native)
		ret->line = get32(object + v->first_line);
	return 0;
}

/* Each instruction has its line, which was read with the frame. */
unsigned int php_line(const struct language_function *f, int at)
{
	return f->native || at < 0 ? 0 : at;
}
