/* SPDX-License-Identifier: GPL-2.0-or-later */
/* names.h - finds the table in which Ruby has the names of methods by their numbers. */
#ifndef TOOLS_LANGUAGE_RUBY_NAMES_H
#define TOOLS_LANGUAGE_RUBY_NAMES_H

#include "tools/language/ruby/ruby.h"

/**
 * ruby_names_find() - find the table of names
 * @m: libruby.
 * @v: its version.
 * @id2str: address of rb_id2str(); 0: it is not known.
 * @ret: receives how functions in C have their names; all of it is 0 if the code or the table is not as
 *	expected.
 *
 * Return: 0; -EAGAIN: the process did not make the table yet.
 */
int ruby_names_find(const struct language_module *m, const struct ruby_version *v, uint64_t id2str,
		    struct language_numbered *ret);

#endif
